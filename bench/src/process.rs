//! What the kernel knows of another process: CPU time, memory, open files.
//!
//! A process counts with its children: nginx is a master and its workers. CPU time comes from the process's own clock,
//! which has nanoseconds and keeps what ended threads have used; `/proc/PID/stat` has hundredths of a second, too coarse
//! for a cell of a few seconds at a low rate.

use std::fs;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Watched(Option<u32>);

impl Watched {
    pub(crate) const fn new(pid: Option<u32>) -> Self {
        Self(pid)
    }

    /// The process and all below it.
    fn tree(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.0.into_iter().collect();
        let mut next = 0;
        while let Some(pid) = all.get(next).copied() {
            all.extend(children(pid));
            next += 1;
        }
        all
    }

    /// Used so far, by the program and by the kernel for it.
    pub(crate) fn cpu(&self) -> Duration {
        self.tree().into_iter().map(cpu_of).sum()
    }

    /// Resident, in kB.
    pub(crate) fn rss_kb(&self) -> u64 {
        self.tree().into_iter().filter_map(rss_of).sum()
    }

    /// Most files that each process of the tree may have open; the least of them.
    pub(crate) fn file_limit(&self) -> Option<u64> {
        self.tree().into_iter().filter_map(file_limit_of).min()
    }
}

/// Of this process.
pub(crate) fn own_file_limit() -> Option<u64> {
    file_limit_of(std::process::id())
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn cpu_of(pid: u32) -> Duration {
    use nix::{time::ClockId, unistd::Pid};
    let clock = i32::try_from(pid).map(|pid| ClockId::pid_cpu_clock_id(Pid::from_raw(pid)));
    let used = clock.ok().and_then(Result::ok).and_then(|clock| clock.now().ok());
    used.map_or(Duration::ZERO, Duration::from)
}

#[cfg(not(target_os = "linux"))]
fn cpu_of(_: u32) -> Duration {
    Duration::ZERO
}

fn rss_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    number_behind(&status, "VmRSS:")
}

fn file_limit_of(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    number_behind(&limits, "Max open files")
}

fn number_behind(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Watched;
    use std::time::Duration;

    #[test]
    fn this_process_can_be_watched() {
        let this = Watched::new(Some(std::process::id()));
        assert!(this.cpu() > Duration::ZERO);
        assert!(this.rss_kb() > 100);
        assert!(this.file_limit().is_some());
        assert_eq!(Watched::new(None).cpu(), Duration::ZERO);
    }
}
