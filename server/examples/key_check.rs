//! The key check of a call, for callgrind, as `bench/src/bin/hot.rs` has the other hot functions: `key_check CASE`.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use anyhow::bail;
use std::hint::black_box;
use switchyard::measured::KeyCheck;

/// Calls that are counted.
const CALLS: u32 = 100;
/// Named after how many keys there are.
const CASES: [(&str, usize); 2] = [("key-check-1", 1), ("key-check-1000", 1000)];

fn main() -> anyhow::Result<()> {
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in CASES {
            println!("{name}");
        }
        return Ok(());
    };
    let Some((_, keys)) = CASES.iter().find(|(known, _)| *known == name) else {
        bail!("there is no case {name}");
    };
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let check = runtime.block_on(KeyCheck::new(folder.path(), *keys))?;
    if !check.is_known() {
        bail!("the key that was just used is not known");
    }
    collected(|| {
        black_box(check.is_known());
    });
    println!("{CALLS}");
    Ok(())
}

/// What callgrind counts: everything below this function, by whose name it knows when to begin and to end.
#[inline(never)]
fn collected(mut call: impl FnMut()) {
    for _ in 0..CALLS {
        call();
    }
}
