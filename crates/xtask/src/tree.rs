//! The repository as text: every file that git keeps or would keep.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::source::{self, Source};

/// Why the repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file or folder that should be readable is not.
    #[error("cannot read {}; check its rights", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// The files of a repository, by their path from its root.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    texts: BTreeMap<String, String>,
    /// Every file, also those that are not text, and every folder.
    paths: BTreeSet<String>,
    /// The Rust files, or the line at which one stops being Rust.
    sources: BTreeMap<String, Result<Source, usize>>,
}

impl Tree {
    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// [`TreeError::Unreadable`].
    pub fn load(root: &Path) -> Result<Self, TreeError> {
        let paths = match kept_by_git(root) {
            Some(paths) => paths,
            None => walk(root)?,
        };
        let mut tree = Self::default();
        for path in paths {
            let at = root.join(&path);
            let is_file = fs::symlink_metadata(&at).is_ok_and(|it| it.is_file());
            if !is_file {
                continue;
            }
            let bytes =
                fs::read(&at).map_err(|source| TreeError::Unreadable { path: at, source })?;
            tree.add(path, bytes);
        }
        Ok(tree)
    }

    /// A repository that exists only here, for tests of the rules.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add((*path).to_owned(), text.as_bytes().to_vec());
        }
        tree
    }

    /// Every text file with its path.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// One text file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Every Rust file that reads as Rust.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().filter_map(|(path, it)| Some((path.as_str(), it.as_ref().ok()?)))
    }

    /// Every Rust file that does not, with the line at which it stops.
    pub fn unread(&self) -> impl Iterator<Item = (&str, usize)> {
        self.sources.iter().filter_map(|(path, it)| Some((path.as_str(), *it.as_ref().err()?)))
    }

    /// One Rust file.
    pub fn source(&self, path: &str) -> Option<&Source> {
        self.sources.get(path)?.as_ref().ok()
    }

    /// Whether there is a file or a folder at `path`.
    pub fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    /// The folders directly under `crates/` that hold a manifest.
    pub fn crates(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().filter_map(|path| {
            path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|it| !it.contains('/'))
        })
    }

    fn add(&mut self, path: String, bytes: Vec<u8>) {
        let folders = path.match_indices('/').map(|(end, _)| path[..end].to_owned());
        self.paths.extend(folders);
        self.paths.insert(path.clone());
        let Ok(text) = String::from_utf8(bytes) else { return };
        if path.ends_with(".rs") {
            self.sources.insert(path.clone(), source::read(&text));
        }
        self.texts.insert(path, text);
    }
}

/// What git keeps and what it would keep if asked; `None` where there is no git.
fn kept_by_git(root: &Path) -> Option<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|it| it.status.success())?;
    let text = String::from_utf8(listed.stdout).ok()?;
    Some(text.split_terminator('\0').map(str::to_owned).collect())
}

/// The same for a copy without git: all but build output, hidden folders and the real inputs.
fn walk(root: &Path) -> Result<Vec<String>, TreeError> {
    const SHOWN: [&str; 4] = [".ci", ".cargo", ".gitignore", ".github"];
    const LEFT_OUT: [&str; 2] = ["target", "shared"];
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let at = root.join(&folder);
        let unreadable = |source| TreeError::Unreadable { path: at.clone(), source };
        for entry in fs::read_dir(&at).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_hidden = name.starts_with('.') && !SHOWN.contains(&&*name);
            if is_hidden || LEFT_OUT.contains(&&*name) {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            match entry.file_type().map_err(unreadable)? {
                it if it.is_dir() => folders.push(path),
                it if it.is_file() => paths.push(path),
                _ => {}
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_without_git_holds_the_same_rust_files() {
        let root = crate::root();
        let Some(kept) = kept_by_git(&root) else { return };
        let walked = walk(&root).unwrap();
        let rust = |paths: Vec<String>| -> BTreeSet<String> {
            paths
                .into_iter()
                .filter(|it| it.starts_with("crates/") && it.ends_with(".rs"))
                .collect()
        };
        let deleted = |it: &String| !root.join(it).exists();
        let (kept, walked) = (rust(kept), rust(walked));
        let missed: Vec<_> = kept.difference(&walked).filter(|it| !deleted(it)).collect();
        assert!(missed.is_empty(), "{missed:?}");
    }

    #[test]
    fn folders_and_crates_are_known_from_their_files() {
        let tree = Tree::of(&[("crates/a/Cargo.toml", ""), ("crates/a/fuzz/Cargo.toml", "")]);
        assert!(tree.has("crates/a/fuzz") && tree.has("crates/a/Cargo.toml") && !tree.has("b"));
        assert_eq!(tree.crates().collect::<Vec<_>>(), ["a"]);
    }
}
