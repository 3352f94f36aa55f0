//! What a provider allows in a conversation.

use crate::message::Origin;

/// The rules that the arrangement of a context depends on.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Whose reasoning and opaque items may be sent.
    pub(crate) origin: Origin,
    /// No two assistant messages may stand next to each other.
    pub(crate) alternates: bool,
    /// No two user messages may either, nor one next to a tool message.
    pub(crate) is_strict: bool,
    /// An assistant message may not be the last one.
    pub(crate) ends_with_user: bool,
}

pub(crate) static OPENAI_CHAT: Profile = Profile {
    origin: Origin::OpenAiChat,
    alternates: false,
    is_strict: false,
    ends_with_user: false,
};

pub(crate) static STRICT_TEMPLATE: Profile = Profile {
    origin: Origin::OpenAiChat,
    alternates: true,
    is_strict: true,
    ends_with_user: false,
};

pub(crate) static OPENAI_RESPONSES: Profile = Profile {
    origin: Origin::OpenAiResponses,
    alternates: false,
    is_strict: false,
    ends_with_user: false,
};

// The API itself joins neighbours; some clouds that offer it refuse them.
pub(crate) static ANTHROPIC: Profile = Profile {
    origin: Origin::Anthropic,
    alternates: true,
    is_strict: false,
    ends_with_user: false,
};

pub(crate) static GEMINI: Profile =
    Profile { origin: Origin::Gemini, alternates: true, is_strict: false, ends_with_user: true };

impl Profile {
    /// Returns true for the forms that hold OpenAI chat messages.
    pub(crate) fn is_openai_chat(&self) -> bool {
        self.origin == Origin::OpenAiChat
    }

    /// Returns true where the ids of calls are letters, digits, `_` and `-`.
    pub(crate) fn has_plain_ids(&self) -> bool {
        self.origin == Origin::Anthropic
    }
}
