//! A new migration must rebuild this crate, which embeds them all; the macro alone does not see new files.

fn main() {
    println!("cargo:rerun-if-changed=../../../migrations/sqlite");
}
