//! Open files: as many as the system allows, and a table with room for them from the start.
//!
//! A gateway has two for every stream. The soft limit that a shell gives (often 1,024) is for programs that use `select`;
//! this one goes to the hard limit, as servers do.
//!
//! The kernel's table of a process's files grows by doubling, and where threads share it, whichever opens the file that no
//! longer fits waits until every processor has let go of the old one: some ten milliseconds, for all streams of that core.
//! So it is made large before there are threads. It costs eight bytes a file, and never shrinks.

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;

/// Room for this many, if they are allowed: a quarter of a megabyte. Beyond, the table doubles as it always did.
const ROOM: u64 = 32 * 1024;

/// As far as the system lets it.
///
/// # Errors
/// When there is no room: the table grows when it has to.
pub(crate) fn prepare() -> Result<(), Errno> {
    let allowed = raise();
    make_room(i32::try_from(allowed.min(ROOM)).unwrap_or(i32::MAX))
}

/// To the hard limit; tells what holds then.
fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    }
    .unwrap_or(u64::MAX)
}

/// Opens a file with the highest number that is meant to fit, and closes it again.
fn make_room(room: i32) -> Result<(), Errno> {
    let any = File::open("/dev/null").map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::BADF))?;
    fcntl_dupfd_cloexec(&any, room - 1).map(drop)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_as_are_allowed_and_room_for_them() {
        prepare().unwrap();
        let status = |file: &str, word: &str| {
            let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
            line.trim().to_owned()
        };
        let limits = status("limits", "Max open files");
        let [soft, hard, ..] = limits.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{limits}");
        };
        assert_eq!(soft, hard);
        let room: u64 = status("status", "FDSize:").parse().unwrap();
        assert!(room >= ROOM.min(hard.parse().unwrap_or(u64::MAX)), "{room}");
    }
}
