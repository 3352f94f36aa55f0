//! Loading: a JSON file, and the environment on top.

use std::{env::vars_os, fs::File, io::Read, path::Path};

use super::{agent_defaults, env, layer::Layer, node::Node, summarization::SummarizationConfig};
use crate::error::{Error, Result};

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

impl SummarizationConfig {
    /// Reads JSON: a whole configuration with `agents.defaults` in it, or just
    /// a `summarization` block. The environment is not asked.
    ///
    /// # Errors
    ///
    /// [`Error::is_config`], with the field's path and what it allows, where
    /// the JSON is broken (also with line and column), a value is not allowed,
    /// two values clash, or a field of the block is unknown.
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::SummarizationConfig;
    ///
    /// let error = SummarizationConfig::from_json_str(r#"{"token_percent": 0.75}"#).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "configuration: token_percent: 0.75 is not allowed since it counts percents, write 75 \
    ///      for 0.75; allowed is a whole number from 1 to 100, 0 for the default, or \"off\"",
    /// );
    /// ```
    pub fn from_json_str(text: &str) -> Result<Self> {
        let mut layer = Layer::default();
        read_json(&mut layer, "configuration", text)?;
        layer.resolve()
    }

    /// Reads a JSON file, in the form that
    /// [`from_json_str`](Self::from_json_str) reads. The environment is not
    /// asked.
    ///
    /// # Errors
    ///
    /// As [`from_json_str`](Self::from_json_str), with the file's name; also
    /// where the file cannot be read, is larger than 16 MiB or not UTF-8.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_with(Some(path.as_ref()), std::iter::empty::<(&str, &str)>())
    }

    /// Reads a JSON file, where one is named, and on top of it this process's
    /// `SUMMARIZATION_*` variables: one for each field, such as
    /// `SUMMARIZATION_KEEP_LAST_MESSAGES=6` or `SUMMARIZATION_TIMEOUT=90s`.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Self::from_file); also for a variable with a value
    /// that is not allowed, and for a `SUMMARIZATION_*` variable that names no
    /// field.
    pub fn load(path: Option<&Path>) -> Result<Self> {
        // Text that is not UTF-8 stays recognizably wrong, and its field refuses it.
        Self::load_with(
            path,
            vars_os().map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            }),
        )
    }

    /// As [`load`](Self::load), with the given variables instead of this
    /// process's.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::SummarizationConfig;
    ///
    /// let config = SummarizationConfig::load_with(None, [("SUMMARIZATION_KEEP_LAST_MESSAGES", "6")])?;
    /// assert_eq!(config.keep_last_messages, 6);
    /// # Ok::<(), session_compaction::Error>(())
    /// ```
    pub fn load_with<N: AsRef<str>, V: AsRef<str>>(
        path: Option<&Path>,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let mut layer = Layer::default();
        if let Some(path) = path {
            let origin = path.display().to_string();
            read_json(&mut layer, &origin, &read_text(path, &origin)?)?;
        }
        for (name, value) in variables {
            env::read(&mut layer, name.as_ref(), value.as_ref())?;
        }
        layer.resolve()
    }
}

fn read_json(layer: &mut Layer, origin: &str, text: &str) -> Result<()> {
    let root = Node::from_json(text).map_err(|problem| problem.at(origin))?;
    let Some(agents) = root.member("", "agents").map_err(|problem| problem.at(origin))? else {
        return layer.read_block(origin, "", &root);
    };
    match agents.member("agents", "defaults").map_err(|problem| problem.at(origin))? {
        Some(defaults) => agent_defaults::read(layer, origin, "agents.defaults", defaults),
        None => Ok(()),
    }
}

fn read_text(path: &Path, origin: &str) -> Result<String> {
    let refuse = |problem: String| Error::config(origin, "file", problem);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| refuse(format!("cannot be read: {error}; allowed is a JSON file")))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(refuse(format!("is too large; allowed are {MAX_FILE_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        refuse(format!("is not text: {}; allowed is UTF-8", error.utf8_error()))
    })?;
    // Some editors put a byte order mark in front, which JSON forbids.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
