//! Which tokenizer a model has, by its name.

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Family {
    /// Not known.
    #[default]
    Any,
    Cl100k,
    Claude,
    O200k,
}

impl Family {
    /// Reads a model's name, with or without a provider in front.
    pub(super) fn of(name: &str) -> Self {
        const O200K: [&str; 9] =
            ["gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "chatgpt", "o1", "o3", "o4"];
        const CL100K: [&str; 4] = ["gpt-4", "gpt-3.5", "gpt-35", "text-embedding-"];

        let name = name.to_ascii_lowercase();
        let model = name.rsplit('/').next().unwrap_or_default();
        let is_one_of = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
        if name.contains("claude") {
            Self::Claude
        } else if is_one_of(&O200K) {
            Self::O200k
        } else if is_one_of(&CL100K) {
            Self::Cl100k
        } else {
            Self::Any
        }
    }
}
