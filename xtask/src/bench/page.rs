//! `docs/performance.md`: how to read the figures, and the figures of the run that wrote it.

use super::{About, growth::Grown, table::Table};
use crate::project::Project;
use anyhow::{Context as _, Result};
use std::{fmt::Write as _, fs};

const TEXT: &str = include_str!("performance.md");

pub(super) fn write(project: &Project, about: &About, tables: &[Table], growth: &[Grown]) -> Result<()> {
    let mut text = TEXT.replace("@about@", &about.to_string());
    for (place, table) in ["@ratios@", "@added@", "@absolute@", "@memory@"]
        .into_iter()
        .zip(tables)
    {
        text = text.replace(place, table.to_string().trim_end());
    }
    let mut grown = String::new();
    for Grown { table, .. } in growth {
        writeln!(grown, "### {}\n\n{table}", table.title)?;
    }
    text = text.replace("@growth@", grown.trim_end());
    let path = project.path("docs/performance.md");
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("==> {}", path.display());
    Ok(())
}
