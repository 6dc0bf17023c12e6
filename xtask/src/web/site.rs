//! `target/site`: the files as they are served, each with its compressed variants, and an id for the whole set.
//!
//! Compressing is for the build: at quality 11 brotli is far too slow to do it per request.

use super::{
    Mode,
    fingerprint::{add, hex},
};
use crate::project::{Project, files};
use anyhow::{Context as _, Result, bail};
use brotli::enc::BrotliEncoderParams;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

/// What a first visit may load, in bytes of brotli, the page itself not counted.
const BUDGET: usize = 320_000;

const BOOT: &str = include_str!("../../assets/boot.js");
const ICON: &str = include_str!("../../assets/favicon.svg");

const ID: &str = "build-id";

/// Names in `target/site`, and what is in them.
type Site = BTreeMap<PathBuf, Vec<u8>>;

pub(super) fn assemble(project: &Project, pkg: &Path, style: String, mode: Mode) -> Result<()> {
    let folder = project.site();
    let mut site = plain_files(pkg, style)?;
    let id = id(&site);
    if mode == Mode::Shipped {
        let variants = site
            .iter()
            .map(|(name, bytes)| variants(&folder, name, bytes))
            .collect::<Result<Vec<_>>>()?;
        site.extend(variants.into_iter().flatten());
    }
    site.insert(ID.into(), id.into_bytes());
    write(&folder, &site)?;
    if mode == Mode::Shipped { report(&site) } else { Ok(()) }
}

fn plain_files(pkg: &Path, style: String) -> Result<Site> {
    let mut site = Site::from([
        ("app.css".into(), style.into_bytes()),
        ("boot.js".into(), BOOT.into()),
        ("favicon.svg".into(), ICON.into()),
    ]);
    for file in files(pkg)? {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        site.insert(file.strip_prefix(pkg)?.to_owned(), bytes);
    }
    Ok(site)
}

/// Changes when any file does. It is part of every file's address, so that browsers may keep what they have for good.
fn id(site: &Site) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in site {
        add(&mut hash, name, bytes);
    }
    hex(&hash.finalize()[..6])
}

/// The compressed variants of one file: those in `folder`, if the file is the same there.
fn variants(folder: &Path, name: &Path, bytes: &[u8]) -> Result<Site> {
    let unchanged = is_same(&folder.join(name), bytes);
    let mut variants = Site::new();
    for (suffix, compress) in [("br", brotli as fn(&[u8]) -> Result<Vec<u8>>), ("gz", gzip)] {
        let variant = with_suffix(name, suffix);
        let made = if unchanged {
            fs::read(folder.join(&variant)).ok()
        } else {
            None
        };
        let made = made.map_or_else(|| compress(bytes), Ok)?;
        variants.insert(variant, made);
    }
    Ok(variants)
}

fn brotli(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let parameters = BrotliEncoderParams {
        quality: 11,
        size_hint: bytes.len(),
        ..Default::default()
    };
    brotli::BrotliCompress(&mut bytes, &mut out, &parameters)?;
    Ok(out)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// `app.js` and `br` make `app.js.br`.
fn with_suffix(name: &Path, suffix: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Touches only what has changed, so that Cargo embeds again only what is new; the id comes last.
fn write(folder: &Path, site: &Site) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for file in files(folder)? {
        if !site.contains_key(file.strip_prefix(folder)?) {
            fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
    }
    let (ids, rest): (Vec<_>, Vec<_>) = site.iter().partition(|(name, _)| name.as_path() == Path::new(ID));
    for (name, bytes) in rest.into_iter().chain(ids) {
        let path = folder.join(name);
        if !is_same(&path, bytes) {
            replace(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// A debug server may be reading the file right now: it sees the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let part = with_suffix(path, "part");
    fs::write(&part, bytes)?;
    Ok(fs::rename(part, path)?)
}

fn is_same(path: &Path, bytes: &[u8]) -> bool {
    fs::read(path).is_ok_and(|old| old == bytes)
}

/// Prints the sizes, and fails when a first visit would load too much.
fn report(site: &Site) -> Result<()> {
    let (mut raw_total, mut brotli_total) = (0, 0);
    println!("    {:<20} {:>10} {:>10}", "target/site", "raw", "brotli");
    for (name, bytes) in site {
        let Some(variant) = site.get(&with_suffix(name, "br")) else {
            continue;
        };
        println!("    {:<20} {:>10} {:>10}", name.display(), bytes.len(), variant.len());
        raw_total += bytes.len();
        brotli_total += variant.len();
    }
    println!("    {:<20} {raw_total:>10} {brotli_total:>10}", "all");
    if brotli_total > BUDGET {
        bail!("a first visit would load {brotli_total} bytes, {BUDGET} are allowed: something heavy came into `app`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BUDGET, Site, brotli, gzip, id, report, with_suffix};
    use std::{io::Read as _, path::Path};

    #[test]
    fn variants_hold_the_same_bytes() {
        let text = b"switch ".repeat(1000);
        let mut out = Vec::new();
        brotli::BrotliDecompress(&mut &brotli(&text).unwrap()[..], &mut out).unwrap();
        assert_eq!(out, text);
        out.clear();
        flate2::read::GzDecoder::new(&gzip(&text).unwrap()[..])
            .read_to_end(&mut out)
            .unwrap();
        assert_eq!(out, text);
    }

    #[test]
    fn the_id_follows_names_and_contents() {
        let site = |name: &str, bytes: &str| id(&Site::from([(name.into(), bytes.into())]));
        assert_eq!(site("a", "b"), site("a", "b"));
        assert_ne!(site("a", "b"), site("a", "c"));
        assert_ne!(site("ab", "c"), site("a", "bc"));
        assert_eq!(site("a", "b").len(), 12);
    }

    #[test]
    fn a_site_over_its_budget_fails() {
        let name = Path::new("app.js");
        let site = |size| Site::from([(name.into(), Vec::new()), (with_suffix(name, "br"), vec![0; size])]);
        assert!(report(&site(BUDGET)).is_ok());
        assert!(report(&site(BUDGET + 1)).is_err());
    }
}
