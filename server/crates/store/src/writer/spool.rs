//! Records on disk, until the database takes them.
//!
//! A folder of numbered files, one JSON object a line. A file is only ever appended to by the run that created it, one
//! write per batch; that survives the death of the process without a flush to the disk. Reading begins with the oldest
//! file and, when that is the one being appended to, ends it first: appending goes on in a new one. A file is deleted once
//! all its lines are committed; killed before that, the next run reads it again, and the database recognises what it has.
//!
//! What cannot be read (the line that `kill -9` cut in two, a damaged one) is skipped, counted and reported. Fields that
//! are added to the record later need a serde default, so that a new build can read what an old one left.

use super::batch::Numbered;
use crate::open::{create_private_folder, private};
use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

const SUFFIX: &str = ".jsonl";
/// A file that is longer is ended.
const SEGMENT_BYTES: u64 = 16 << 20;

pub(super) struct Spool {
    folder: PathBuf,
    max_bytes: u64,
    /// Oldest first.
    segments: VecDeque<Segment>,
    next_number: u64,
    /// The last segment, while it is appended to.
    writing: Option<File>,
    /// The first segment, while it is read.
    reading: Option<BufReader<File>>,
    /// Lines of the chunk that was read and is not committed.
    chunk_lines: u64,
}

struct Segment {
    path: PathBuf,
    bytes: u64,
    /// Lines that are not committed yet.
    lines: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    #[error("it has reached its limit of {limit} bytes")]
    Full { limit: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a record cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Part of a segment.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) records: Vec<Numbered>,
    /// Lines that could not be read.
    pub(super) unreadable: u64,
    /// Nothing is left on the spool.
    pub(super) is_last: bool,
}

impl Spool {
    /// An empty spool; its folder is created when something has to go there.
    pub(super) const fn new(folder: PathBuf, max_bytes: u64) -> Self {
        Self {
            folder,
            max_bytes,
            segments: VecDeque::new(),
            next_number: 0,
            writing: None,
            reading: None,
            chunk_lines: 0,
        }
    }

    /// Looks for what an earlier run left, before anything is appended. A folder that cannot be read counts as empty, and
    /// the log says so.
    pub(super) fn find_left_over(&mut self) {
        match find_segments(&self.folder) {
            Ok(found) => {
                self.next_number = found.last().map_or(0, |(number, _)| number + 1);
                self.segments = found.into_iter().map(|(_, segment)| segment).collect();
            }
            Err(error) => tracing::warn!(path = %self.folder.display(), %error, "the spool cannot be read"),
        }
    }

    /// Records that wait.
    pub(super) fn records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.lines).sum()
    }

    // === Appending ===

    /// Takes all of a batch, or none of it.
    pub(super) fn append(&mut self, batch: &[Numbered]) -> Result<(), SpoolError> {
        let mut lines = Vec::with_capacity(batch.len() * 512);
        for numbered in batch {
            serde_json::to_writer(&mut lines, numbered)?;
            lines.push(b'\n');
        }
        let held: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        if held + lines.len() as u64 > self.max_bytes {
            return Err(SpoolError::Full { limit: self.max_bytes });
        }
        if self
            .segments
            .back()
            .is_some_and(|segment| segment.bytes >= SEGMENT_BYTES)
        {
            self.writing = None;
        }
        if self.writing.is_none() {
            self.begin_segment()?;
        }
        let (Some(file), Some(segment)) = (&mut self.writing, self.segments.back_mut()) else {
            return Err(io::Error::other("no segment is open").into());
        };
        if let Err(error) = file.write_all(&lines) {
            // What was written of it would be read as records; and the file is not trusted with more.
            let _ = file.set_len(segment.bytes);
            self.writing = None;
            return Err(error.into());
        }
        segment.bytes += lines.len() as u64;
        segment.lines += batch.len() as u64;
        Ok(())
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        create_private_folder(&self.folder)?;
        let path = self.folder.join(format!("{:010}{SUFFIX}", self.next_number));
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        private(&mut options);
        self.next_number += 1;
        self.writing = Some(options.open(&path)?);
        self.segments.push_back(Segment {
            path,
            bytes: 0,
            lines: 0,
        });
        Ok(())
    }

    // === Reading back ===

    /// The next records, at most `limit`, all of one segment. There may be none though more are left: call it again.
    /// [`Spool::committed`] must be called before the next chunk is read.
    pub(super) fn read(&mut self, limit: usize) -> Chunk {
        let mut chunk = Chunk::default();
        let Some(segment) = self.segments.front() else {
            chunk.is_last = true;
            return chunk;
        };
        if self.segments.len() == 1 {
            self.writing = None;
        }
        let read = match &mut self.reading {
            Some(reader) => read_lines(reader, &segment.path, limit, &mut chunk),
            None => File::open(&segment.path).and_then(|file| {
                let reader = self.reading.insert(BufReader::with_capacity(1 << 16, file));
                read_lines(reader, &segment.path, limit, &mut chunk)
            }),
        };
        self.chunk_lines = chunk.records.len() as u64 + chunk.unreadable;
        if let Err(error) = read {
            self.set_aside(&error, &mut chunk);
        } else if self.chunk_lines == 0 {
            self.delete_first();
        }
        chunk
    }

    /// The last chunk is in the database.
    pub(super) fn committed(&mut self) {
        if let Some(segment) = self.segments.front_mut() {
            segment.lines = segment.lines.saturating_sub(self.chunk_lines);
            self.chunk_lines = 0;
            if segment.lines == 0 {
                self.delete_first();
            }
        }
    }

    fn delete_first(&mut self) {
        self.reading = None;
        if let Some(segment) = self.segments.pop_front()
            && let Err(error) = fs::remove_file(&segment.path)
        {
            // Harmless: the next run finds that the database has its records.
            tracing::warn!(path = %segment.path.display(), %error, "a spool file that was written to the database cannot be deleted");
        }
    }

    /// Goes on without a file that cannot be read. It stays on disk for the next run.
    fn set_aside(&mut self, error: &io::Error, chunk: &mut Chunk) {
        self.reading = None;
        if let Some(segment) = self.segments.pop_front() {
            tracing::error!(path = %segment.path.display(), %error, "a spool file cannot be read and is left for the next start");
            chunk.unreadable = segment.lines.saturating_sub(chunk.records.len() as u64);
        }
        self.chunk_lines = 0;
    }
}

fn read_lines(reader: &mut impl BufRead, path: &Path, limit: usize, chunk: &mut Chunk) -> io::Result<()> {
    let mut line = Vec::new();
    while chunk.records.len() < limit {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(numbered) => chunk.records.push(numbered),
            Err(error) => {
                chunk.unreadable += 1;
                tracing::warn!(path = %path.display(), %error, "a line of the spool cannot be read and is skipped");
            }
        }
    }
    Ok(())
}

fn find_segments(folder: &Path) -> io::Result<Vec<(u64, Segment)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(SUFFIX));
        if let Some(number) = name.and_then(|name| name.parse().ok()) {
            let (bytes, lines) = measure(&path)?;
            found.push((number, Segment { path, bytes, lines }));
        }
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(found)
}

/// Bytes and lines of a file, a last one without an end included.
fn measure(path: &Path) -> io::Result<(u64, u64)> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut bytes, mut lines, mut ends_with_newline) = (0, 0, true);
    loop {
        let buffer = reader.fill_buf()?;
        let Some(last) = buffer.last() else { break };
        ends_with_newline = *last == b'\n';
        bytes += buffer.len() as u64;
        lines += buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = buffer.len();
        reader.consume(length);
    }
    Ok((bytes, lines + u64::from(!ends_with_newline)))
}
