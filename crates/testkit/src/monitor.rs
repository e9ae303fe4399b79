//! What a server receives, by MONITOR.

use crate::{Raw, unique_key};

/// The commands a server receives, from the moment this was made.
#[derive(Debug)]
pub struct Monitor {
    lines: Raw,
    control: Raw,
}

impl Monitor {
    pub(crate) fn new(mut lines: Raw, control: Raw) -> Self {
        let reply = lines.cmd(&["MONITOR"]);
        assert!(reply.is_ok(), "MONITOR was answered by {reply:?}");
        Self { lines, control }
    }

    /// Reads lines up to and with the first that satisfies the condition.
    ///
    /// # Panics
    /// When none comes for 10 s.
    pub fn lines_until(&mut self, mut last: impl FnMut(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.next_line();
            let done = last(&line);
            lines.push(line);
            if done {
                return lines;
            }
        }
    }

    /// Everything up to now that was not read yet. The server works in order, so a command of
    /// our own marks the place: nothing before it is missed.
    pub fn so_far(&mut self) -> Vec<String> {
        let marker = unique_key("monitor-marker");
        self.control.cmd(&["ECHO", &marker]);
        let mut lines = self.lines_until(|line| line.contains(&marker));
        lines.pop();
        lines
    }

    /// Everything up to now that was not read yet, and the end of the monitoring.
    #[must_use]
    pub fn stop(mut self) -> Vec<String> {
        self.so_far()
    }

    fn next_line(&mut self) -> String {
        let line = self.lines.receive();
        line.text().unwrap_or_else(|| panic!("no line of MONITOR: {line:?}")).to_owned()
    }
}
