//! A unified diff of two texts, for people and for `patch`.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Cells of the table at most; beyond, the middle is replaced as a whole.
const CELLS: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The diff that turns `old` into `new`, byte for byte, empty where they are the same.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    // A line ends with its line feed; a carriage return before it is the line's own.
    let (a, b): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let edits = edits(&a, &b);
    let mut out = String::new();
    let changed: Vec<usize> = (0..edits.len()).filter(|it| edits[*it] != Edit::Keep).collect();
    let mut at = 0;
    while at < changed.len() {
        // Changes nearer than two contexts share a hunk.
        let mut last = at;
        while last + 1 < changed.len() && changed[last + 1] - changed[last] <= 2 * CONTEXT + 1 {
            last += 1;
        }
        let from = changed[at].saturating_sub(CONTEXT);
        let to = (changed[last] + CONTEXT + 1).min(edits.len());
        if out.is_empty() {
            let _ = writeln!(out, "--- {}\n+++ {}", headed('a', name), headed('b', name));
        }
        hunk(&a, &b, &edits, from, to, &mut out);
        at = last + 1;
    }
    out
}

fn hunk(a: &[&str], b: &[&str], edits: &[Edit], from: usize, to: usize, out: &mut String) {
    let count = |edits: &[Edit], skipped: Edit| edits.iter().filter(|it| **it != skipped).count();
    let (mut i, mut j) = (count(&edits[..from], Edit::Add), count(&edits[..from], Edit::Remove));
    let (n, m) = (count(&edits[from..to], Edit::Add), count(&edits[from..to], Edit::Remove));
    // An empty side names the line before it.
    let start = |at: usize, n: usize| if n == 0 { at } else { at + 1 };
    let _ = writeln!(out, "@@ -{},{n} +{},{m} @@", start(i, n), start(j, m));
    for edit in &edits[from..to] {
        let (sign, line) = match edit {
            Edit::Keep => (' ', a[i]),
            Edit::Remove => ('-', a[i]),
            Edit::Add => ('+', b[j]),
        };
        i += usize::from(*edit != Edit::Add);
        j += usize::from(*edit != Edit::Remove);
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// A name as git writes it: what would end it early stands in quotes, and behind a blank a tab
/// says where it ends.
fn headed(side: char, name: &str) -> String {
    let name = format!("{side}/{name}");
    if name.contains(|it: char| it == '"' || it == '\\' || it.is_ascii_control()) {
        let quoted = name.chars().map(|it| match it {
            '"' | '\\' => format!("\\{it}"),
            it if it.is_ascii_control() => format!("\\{:03o}", it as u32),
            it => it.to_string(),
        });
        return format!("\"{}\"", quoted.collect::<String>());
    }
    if name.contains(' ') { format!("{name}\t") } else { name }
}

/// The longest common subsequence by the textbook's table, after equal ends are set aside.
fn edits(a: &[&str], b: &[&str]) -> Vec<Edit> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (left, right) = (&a[head..], &b[head..]);
    let tail = left.iter().rev().zip(right.iter().rev()).take_while(|(a, b)| a == b).count();
    let (left, right) = (&left[..left.len() - tail], &right[..right.len() - tail]);
    let mut out = vec![Edit::Keep; head];
    let (n, m) = (left.len(), right.len());
    if n * m > CELLS {
        out.extend(vec![Edit::Remove; n]);
        out.extend(vec![Edit::Add; m]);
    } else {
        let mut longest = vec![0_u32; (n + 1) * (m + 1)];
        for i in (0..n).rev() {
            for j in (0..m).rev() {
                longest[i * (m + 1) + j] = if left[i] == right[j] {
                    longest[(i + 1) * (m + 1) + j + 1] + 1
                } else {
                    longest[(i + 1) * (m + 1) + j].max(longest[i * (m + 1) + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < n || j < m {
            let keeps = i < n && j < m && left[i] == right[j];
            let removes =
                j == m || (i < n && longest[(i + 1) * (m + 1) + j] >= longest[i * (m + 1) + j + 1]);
            if keeps {
                out.push(Edit::Keep);
                (i, j) = (i + 1, j + 1);
            } else if removes {
                out.push(Edit::Remove);
                i += 1;
            } else {
                out.push(Edit::Add);
                j += 1;
            }
        }
    }
    out.extend(vec![Edit::Keep; tail]);
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::unified;

    #[test]
    fn changes_stand_in_their_context() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n";
        let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\nm\nn\n";
        expect![[r#"
            --- a/x
            +++ b/x
            @@ -1,5 +1,5 @@
             a
            -b
            +B
             c
             d
             e
            @@ -9,5 +9,5 @@
             i
             j
             k
            -l
             m
            +n
        "#]]
        .assert_eq(&unified("x", old, new));
        assert_eq!(unified("x", old, old), "");
        expect![[r#"
            --- a/x
            +++ b/x
            @@ -0,0 +1,1 @@
            +a
        "#]]
        .assert_eq(&unified("x", "", "a\n"));
    }

    #[test]
    fn lines_keep_how_they_end_and_names_what_they_hold() {
        let check = |name: &str, old: &str, new: &str, expected: expect_test::Expect| {
            expected.assert_debug_eq(
                &unified(name, old, new).split_inclusive('\n').collect::<Vec<_>>(),
            );
        };
        check(
            "a b",
            "x\r\ny\r\n",
            "x\r\nz\n",
            expect![[r#"
            [
                "--- a/a b\t\n",
                "+++ b/a b\t\n",
                "@@ -1,2 +1,2 @@\n",
                " x\r\n",
                "-y\r\n",
                "+z\n",
            ]
        "#]],
        );
        check(
            "x",
            "a\nb",
            "a\nb\n",
            expect![[r#"
            [
                "--- a/x\n",
                "+++ b/x\n",
                "@@ -1,2 +1,2 @@\n",
                " a\n",
                "-b\n",
                "\\ No newline at end of file\n",
                "+b\n",
            ]
        "#]],
        );
        check(
            "a\"\\\t",
            "a\nb",
            "c\nb",
            expect![[r#"
            [
                "--- \"a/a\\\"\\\\\\011\"\n",
                "+++ \"b/a\\\"\\\\\\011\"\n",
                "@@ -1,2 +1,2 @@\n",
                "-a\n",
                "+c\n",
                " b\n",
                "\\ No newline at end of file\n",
            ]
        "#]],
        );
    }
}
