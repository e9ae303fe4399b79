//! The terminal: a shell with job control, a person typing, and `tenure run` in between.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command},
    sync::{Arc, Mutex},
};

use rustix::{
    fs::{Mode, OFlags, open},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt}, // tidy: allow
};
use tenure_testkit::{TempDir, eventually};

use crate::tool::{PATIENCE, TENURE, end_session, is_free, key, pid_in, shared};

/// An interactive shell on a terminal of its own.
struct Shell {
    shell: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    /// How much of the screen was looked at.
    seen: usize,
    dir: TempDir,
}

impl Shell {
    fn start() -> Self {
        let dir = TempDir::new();
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap(); // tidy: allow
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs: OwnedFd = open(name.as_c_str(), flags, Mode::empty()).unwrap();
        // It makes the terminal on its standard input the session's own.
        let mut shell = Command::new("env");
        shell.args(["--default-signal", "setsid", "--ctty", "bash", "--norc", "--noprofile", "-i"]);
        shell
            .env("PS1", "$ ")
            .env("TENURE_SERVERS", shared().url())
            .env("T", TENURE)
            .current_dir(dir.path());
        shell.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
        let shell = shell.stderr(theirs).spawn().unwrap();
        let keyboard = File::from(ours);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let filled = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The terminal's last user gone is an error here.
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                filled.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        Self { shell, keyboard, screen, seen: 0, dir }
    }

    /// Writes a script where the shell is: what is in it is not on the screen.
    fn script(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }

    /// Types this.
    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is on the screen, below what was looked at before.
    ///
    /// What is typed is on the screen, too: so it is typed in another way than it is expected.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        let find = || {
            let screen = self.screen.lock().unwrap();
            screen[self.seen..].find(text).map(|at| self.seen + at + text.len())
        };
        let what = format!("{text:?} is on the screen");
        let found = std::panic::catch_unwind(|| eventually(PATIENCE, &what, || find().is_some()));
        if found.is_err() {
            panic!("no {text:?} on the screen:\n{}", self.screen.lock().unwrap());
        }
        self.seen = find().unwrap();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        end_session(Pid::from_child(&self.shell));
        // It has ended, or does so now.
        _ = self.shell.wait();
    }
}

const CTRL_C: &str = "\u{3}";
const CTRL_Z: &str = "\u{1a}";

/// Says when it is there, and what it reads.
const READER: &str = "echo started; read x; echo \"read $x\"\n";

#[test]
fn a_command_reads_the_terminal_and_the_shell_has_it_back_afterwards() {
    let mut shell = Shell::start();
    let key = key();
    for input in ["", "</dev/tty"] {
        shell.script("ask", &format!("printf 'name? '; read x {input}; echo \"hello $x\"\n"));
        shell.types(&format!("$T run {key} sh ask; echo code $?\n"));
        shell.shows("name? ");
        shell.types("World\n");
        shell.shows("hello World");
        shell.shows("code 0");
    }
    // A shell that does not own the terminal would be stopped by its next read.
    shell.types("echo al''ive\n");
    shell.shows("alive");
}

#[test]
fn a_command_owns_the_terminal_from_its_first_moment() {
    let mut shell = Shell::start();
    let key = key();
    let look = "read pid name state parent group session tty owner rest </proc/$$/stat";
    shell.script("look", &format!("{look}; test $group = $owner && echo owner\n"));
    shell.types(&format!("$T run {key} sh look; echo code $?\n"));
    shell.shows("owner");
    shell.shows("code 0");
    // Behind a pipe another command may want it.
    shell.types(&format!("true | $T run {key} sh look; echo code $?\n"));
    shell.shows("code 1");
}

#[test]
fn a_password_prompt_switches_the_echo_off_and_reads_the_terminal() {
    let mut shell = Shell::start();
    let key = key();
    shell.script(
        "ask",
        "stty -echo </dev/tty; printf 'password: ' >/dev/tty; read p </dev/tty\n\
         stty echo </dev/tty; echo length ${#p}; cat\n",
    );
    // Standard input is something else, as for `… | less`: the terminal comes when it is wanted.
    shell.types(&format!("echo da''ta | $T run {key} sh ask; echo code $?\n"));
    shell.shows("password: ");
    shell.types("secret\n");
    shell.shows("length 6");
    shell.shows("data");
    shell.shows("code 0");
    assert!(!shell.screen.lock().unwrap().contains("secret"));
}

#[test]
fn ctrl_c_ends_the_command_and_frees_the_lock() {
    let mut shell = Shell::start();
    let key = key();
    shell.script("long", "echo started; exec sleep 300\n");
    shell.types(&format!("$T run {key} sh long\n"));
    shell.shows("started");
    shell.types(CTRL_C);
    shell.types("echo code $?\n");
    shell.shows("code 130");
    assert!(is_free(shared(), &key));
}

#[test]
fn ctrl_c_ends_the_loop_and_the_script_around_the_command_as_well() {
    let mut shell = Shell::start();
    let key = key();
    shell.script("long", "echo started; exec sleep 300\n");
    let several = format!("for i in 1 2 3; do $T run {key} sh long; done");
    shell.script("several", &format!("{several}; echo finished\n"));
    for line in ["sh several", "bash several", &several] {
        shell.types(&format!("{line}\n"));
        shell.shows("started");
        shell.types(CTRL_C);
        shell.types("echo co''de $?\n");
        shell.shows("code 130");
        assert!(is_free(shared(), &key));
    }
    let screen = shell.screen.lock().unwrap();
    assert_eq!(screen.matches("started").count(), 3, "{screen}");
    assert!(!screen.contains("finished"), "{screen}");
}

#[test]
fn a_command_that_dies_leaves_the_terminal_as_it_was() {
    let mut shell = Shell::start();
    let key = key();
    shell.script("mute", "stty -echo; echo $$ > pid; exec sleep 300\n");
    // In a script: an interactive shell sets its own jobs' terminal right.
    let look = "stty -a | tr ' ;' '\\n\\n' | grep -x -e echo -e -echo";
    shell.script("outer", &format!("$T run {key} sh mute; echo \"modes $({look}) at the end\"\n"));
    shell.types("sh outer\n");
    let command = pid_in(&shell.dir.path().join("pid"));
    kill_process(command, Signal::KILL).unwrap();
    shell.shows("modes echo at the end");
}

#[test]
fn a_command_that_handles_ctrl_c_continues() {
    let mut shell = Shell::start();
    let key = key();
    shell.script(
        "takes",
        "trap 'echo taken' INT; echo started; while ! read x; do :; done; echo \"read $x\"\n",
    );
    shell.types(&format!("$T run {key} bash takes; echo code $?\n"));
    shell.shows("started");
    shell.types(CTRL_C);
    shell.types("on\n");
    shell.shows("taken");
    shell.shows("read on");
    shell.shows("code 0");
}

#[test]
fn ctrl_z_stops_the_job_and_fg_resumes_it_with_the_terminal() {
    let mut shell = Shell::start();
    let key = key();
    shell.script("reader", READER);
    shell.types(&format!("$T run {key} sh reader\n"));
    shell.shows("started");
    for _ in 0..2 {
        shell.types(CTRL_Z);
        shell.shows("Stopped");
        shell.types("echo al''ive\n");
        shell.shows("alive");
        assert!(!is_free(shared(), &key));
        // It has the terminal again when its name is shown, and nothing else is to be seen.
        shell.types("fg\n");
        shell.shows("sh reader\r\n");
    }
    shell.types("this\n");
    shell.shows("read this");
    shell.types("echo code $?\n");
    shell.shows("code 0");
    assert!(is_free(shared(), &key));
}

#[test]
fn a_job_in_the_background_gets_the_terminal_by_fg() {
    let mut shell = Shell::start();
    let key = key();
    shell.script("reader", READER);
    shell.types(&format!("$T run {key} sh reader &\n"));
    // It wants to read, and is stopped for that, with the tool.
    shell.types("until jobs | grep Stop''ped; do sleep 0.05; done\n");
    shell.shows("Stopped");
    shell.types("fg\n");
    shell.types("this\n");
    shell.shows("read this");
    shell.types("echo code $?\n");
    shell.shows("code 0");
}

#[test]
fn a_command_stopped_past_its_lease_ends_when_it_resumes() {
    let mut shell = Shell::start();
    let key = key();
    shell.script("reader", READER);
    shell.types(&format!("$T run --ttl 500ms {key} sh reader\n"));
    shell.shows("started");
    shell.types(CTRL_Z);
    shell.shows("Stopped");
    eventually(PATIENCE, "the lease has ended", || is_free(shared(), &key));
    shell.types("fg\n");
    shell.shows("lost the lock");
    shell.types("echo code $?\n");
    shell.shows("code 70");
}

#[test]
fn a_loss_gives_the_terminal_back_to_the_shell() {
    let mut shell = Shell::start();
    let key = key();
    // A shell in the command takes the terminal on, and leaves it to a job of its own.
    shell.types(&format!("$T run --ttl 1 {key} bash --norc -i; echo code $?\n"));
    eventually(PATIENCE, "the lock is held", || !is_free(shared(), &key));
    shell.script("long", "echo started; exec sleep 300\n");
    shell.types("sh long\n");
    shell.shows("started");
    shared().cmd(&["DEL", &key]);
    shell.shows("code 70");
    shell.types("echo al''ive\n");
    shell.shows("alive");
}
