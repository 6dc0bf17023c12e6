//! Differences of texts, line by line.

/// Longest part that is compared line by line; what is longer is shown as a whole.
const MOST_LINES: usize = 3_000;
/// Most lines of a difference that are shown.
const MOST_SHOWN: usize = 80;
const CONTEXT: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    Same,
    Gone,
    New,
}

/// Each line of both texts, once.
pub(crate) fn lines<'a>(old: &'a str, new: &'a str) -> Vec<(Is, &'a str)> {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let tail = a[head..]
        .iter()
        .rev()
        .zip(b[head..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let mut out: Vec<_> = a[..head].iter().map(|line| (Is::Same, *line)).collect();
    middle(&a[head..a.len() - tail], &b[head..b.len() - tail], &mut out);
    out.extend(a[a.len() - tail..].iter().map(|line| (Is::Same, *line)));
    out
}

/// The longest common run of lines stays; the rest is gone or new.
fn middle<'a>(a: &[&'a str], b: &[&'a str], out: &mut Vec<(Is, &'a str)>) {
    if a.len() > MOST_LINES || b.len() > MOST_LINES {
        out.extend(a.iter().map(|line| (Is::Gone, *line)));
        out.extend(b.iter().map(|line| (Is::New, *line)));
        return;
    }
    let mut longest = vec![vec![0_u16; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i][j] = if a[i] == b[j] {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push((Is::Same, a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            out.push((Is::Gone, a[i]));
            i += 1;
        } else {
            out.push((Is::New, b[j]));
            j += 1;
        }
    }
}

/// What differs, with a few lines around it. Headings (`=== …`) above a difference are shown too.
pub(crate) fn show(old: &str, new: &str) -> String {
    let lines = lines(old, new);
    let differs: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].0 != Is::Same).collect();
    let is_near = |at: usize| {
        let next = differs.partition_point(|place| *place + CONTEXT < at);
        differs.get(next).is_some_and(|place| place.abs_diff(at) <= CONTEXT)
    };
    let (mut out, mut shown, mut heading) = (Vec::new(), 0, None);
    for (at, (is, line)) in lines.iter().enumerate() {
        if *is == Is::Same && line.starts_with("=== ") {
            heading = Some(*line);
        }
        if !is_near(at) {
            continue;
        }
        if let Some(heading) = heading.take().filter(|heading| heading != line) {
            out.push(format!("  {heading}"));
        }
        let mark = match is {
            Is::Same => ' ',
            Is::Gone => '-',
            Is::New => '+',
        };
        out.push(format!("{mark} {line}"));
        shown += 1;
        if shown == MOST_SHOWN {
            out.push("  … and more".to_owned());
            break;
        }
    }
    out.join("\n")
}
