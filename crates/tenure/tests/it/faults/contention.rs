//! At most one process holds the lock.

use std::{
    fs::{self, File},
    path::Path,
    time::Duration,
};

use tenure_testkit::{TempDir, scale, unique_key};

use super::{
    TTL,
    program::{self, Program},
    shared,
};

const PROCESSES: usize = 8;
const TASKS: usize = 16;

/// 8 processes of 16 tasks each add to a number in a file, with nothing but the lock between them.
#[test]
fn a_file_protected_only_by_the_lock_loses_no_update() {
    let dir = TempDir::new();
    fs::write(dir.path().join(COUNTER), "0 0").unwrap();
    let key = unique_key("contention");
    let holds = scale(2, 50_000 / PROCESSES / TASKS);
    let settings = [
        ("SERVER", shared().url()),
        ("KEY", key),
        ("DIR", dir.path().display().to_string()),
        ("HOLDS", holds.to_string()),
    ];
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let programs: Vec<_> = (0..PROCESSES).map(|_| Program::start("contend", &settings)).collect();
    programs.into_iter().for_each(Program::end_well);
    let (count, _) = read(dir.path());
    assert_eq!(count, (PROCESSES * TASKS * holds) as u64, "an update was lost");
}

/// One of the processes.
pub(super) fn contend() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = tenure::Client::connect(&program::setting("SERVER")).unwrap();
        let holds: usize = program::setting("HOLDS").parse().unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..TASKS {
            let client = client.clone();
            tasks.spawn(async move { work(client, holds).await });
        }
        // A task that panicked takes the whole program with it.
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}

async fn work(client: tenure::Client, holds: usize) {
    let lock = client.lock(program::setting("KEY")).ttl(TTL);
    let dir = program::setting("DIR");
    let dir = Path::new(&dir);
    for _ in 0..holds {
        let guard = lock.acquire().await.unwrap();
        let inside = dir.join("inside");
        File::create_new(&inside).expect("nobody else is inside");
        let (count, last) = read(dir);
        let number = guard.fencing_token().get();
        assert!(number > last, "{number} after {last}");
        // An invitation to any other holder.
        tokio::time::sleep(Duration::from_micros(500)).await;
        fs::write(dir.join(COUNTER), format!("{} {number}", count + 1)).unwrap();
        fs::remove_file(&inside).expect("nobody else was inside");
        guard.release().await.expect("held to the end");
    }
}

/// How many were inside, and the number of the last of them.
fn read(dir: &Path) -> (u64, u64) {
    let text = fs::read_to_string(dir.join(COUNTER)).unwrap();
    let (count, last) = text.split_once(' ').expect("two numbers");
    (count.parse().unwrap(), last.parse().unwrap())
}

const COUNTER: &str = "counter";
