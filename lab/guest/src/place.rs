// SPDX-License-Identifier: GPL-2.0-only
//! Where files are: the path on the phone, and the same under another root in tests.

use std::path::{Path, PathBuf};

/// Where the phone's storage is mounted.
pub const DATA: &str = "/data";

/// A file of the phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its full path on the phone, which its content is made from.
    pub logical: String,
    /// Where it is in this process.
    pub real: PathBuf,
}

impl Place {
    /// The full path of `file` of `app`: relative to the app's directory, or absolute below /data.
    pub fn logical(app: &str, file: &str) -> Result<String, String> {
        let mut parts: Vec<&str> = if file.starts_with('/') {
            Vec::new()
        } else {
            vec!["data", "app", app]
        };
        for part in file.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        if file.is_empty() || parts.len() < 2 || parts[0] != "data" || file.contains('\0') {
            return Err(format!(
                "file {file:?} is not on the phone; give a path relative to /data/app/{app}, or below /data"
            ));
        }
        Ok(format!("/{}", parts.join("/")))
    }

    /// The place of `file` of `app`, with the phone's /data at `data`.
    pub fn of(data: &Path, app: &str, file: &str) -> Result<Place, String> {
        let logical = Place::logical(app, file)?;
        let real = data.join(&logical[DATA.len() + 1..]);
        Ok(Place { logical, real })
    }
}

/// The directory of an app, with the phone's /data at `data`.
pub fn app_dir(data: &Path, app: &str) -> PathBuf {
    data.join("app").join(app)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_the_apps_own() {
        assert_eq!(
            Place::logical("a", "x/./y").as_deref(),
            Ok("/data/app/a/x/y")
        );
        assert_eq!(
            Place::logical("a", "../b/lib.so").as_deref(),
            Ok("/data/app/b/lib.so")
        );
        assert_eq!(
            Place::logical("a", "/data/media/z").as_deref(),
            Ok("/data/media/z")
        );
    }

    #[test]
    fn nothing_leaves_the_phone() {
        for file in ["", "/etc/passwd", "../../../etc/x", "/data", "../.."] {
            let error = Place::logical("a", file).expect_err(file);
            assert!(error.contains("/data/app/a"), "{error}");
        }
    }

    #[test]
    fn the_root_can_be_elsewhere() {
        let place = Place::of(Path::new("/tmp/t"), "a", "f").expect("a path");
        assert_eq!(place.real, Path::new("/tmp/t/app/a/f"));
        assert_eq!(place.logical, "/data/app/a/f");
    }
}
