//! `tenure init`.

use tenure::{InspectError, NodeReport, blocking::Client};

use super::trouble_of;
use crate::{
    args::InitArgs,
    client::connect,
    exit,
    failure::{Failure, indeterminate, of_config},
    output::show,
};

/// Declares that new servers have forgotten no lock, and says of each what came of it.
///
/// # Errors
///
/// A [`Failure`] when a server was not opened and was not open.
pub(crate) fn init(wanted: &InitArgs) -> Result<u8, Failure> {
    let client = Client::from(connect(&wanted.server)?);
    let reports = client.open_new(wanted.max_ttl).map_err(|error| match error {
        InspectError::Config { error, .. } => of_config(&error),
        error => indeterminate("cannot open the servers", &error),
    })?;
    show(&reports.iter().map(line).collect::<String>())?;
    let closed = reports.iter().filter(|report| report.trouble.is_some()).count();
    match closed {
        0 => Ok(0),
        _ => {
            let words = format!("{closed} of {} servers were not opened", reports.len());
            Err(Failure::new(exit::UNKNOWN, words))
        }
    }
}

fn line(report: &NodeReport) -> String {
    let NodeReport { node, is_opened, trouble, .. } = report;
    match trouble {
        None if *is_opened => format!("{node} opened\n"),
        None => format!("{node} was open already\n"),
        Some(error) => format!("{node} not opened: {}\n", trouble_of(error)),
    }
}
