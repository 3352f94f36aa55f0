//! The classes of bytes, and what each costs in three families of tokenizers.

/// What a byte says about the text around it. Of a character outside ASCII the
/// lead byte carries the cost, by the block that it opens.
#[derive(Clone, Copy, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Class {
    Lower,
    Upper,
    Digit,
    Other,
    Latin,
    Greek,
    Semitic,
    Indic,
    Symbol1,
    Symbol2,
    Kana,
    Han,
    Hangul,
    Compat,
    Astral,
    Continuation,
    Space,
    Newline,
    /// No byte: behind the last one.
    End,
}

pub(super) const CLASSES: [Class; 19] = [
    Class::Lower,
    Class::Upper,
    Class::Digit,
    Class::Other,
    Class::Latin,
    Class::Greek,
    Class::Semitic,
    Class::Indic,
    Class::Symbol1,
    Class::Symbol2,
    Class::Kana,
    Class::Han,
    Class::Hangul,
    Class::Compat,
    Class::Astral,
    Class::Continuation,
    Class::Space,
    Class::Newline,
    Class::End,
];

impl Class {
    pub(super) const fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Digit,
            b' ' | b'\t' => Self::Space,
            b'\n' | b'\r' => Self::Newline,
            0..=0x7F => Self::Other,
            0x80..=0xBF => Self::Continuation,
            0xC0..=0xCD => Self::Latin,
            0xCE..=0xD5 => Self::Greek,
            0xD6..=0xDF => Self::Semitic,
            0xE0 => Self::Indic,
            0xE1 => Self::Symbol1,
            0xE2 => Self::Symbol2,
            0xE3 => Self::Kana,
            0xE4..=0xE9 => Self::Han,
            0xEA..=0xED => Self::Hangul,
            0xEE..=0xEF => Self::Compat,
            0xF0..=0xFF => Self::Astral,
        }
    }
}

/// The costs of one family, in 1/1024 token.
pub(super) struct Weights {
    /// By class, from [`Class::Lower`] to [`Class::Astral`]; the others are free.
    pub(super) class: [u16; 15],
    /// The first letter of an ASCII word.
    pub(super) word: u16,
    /// The first of a run of digits.
    pub(super) number: u16,
    /// A run of punctuation, unless it is one mark that joins the word behind it.
    pub(super) punctuation: u16,
    /// A run of newlines that does not follow punctuation.
    pub(super) lines: u16,
    /// A single space before a digit.
    pub(super) space_digit: u16,
    /// The end of two or more spaces before text.
    pub(super) indent: u16,
    /// An upper letter after two lower ones: the next word of a name.
    pub(super) camel: u16,
    /// An upper letter after a single lower one: letters in no order (base64).
    pub(super) jumble: u16,
    /// The first of a run of characters outside ASCII.
    pub(super) foreign: u16,
}

impl Weights {
    #[expect(
        clippy::indexing_slicing,
        reason = "called for constants only: an index out of range does not compile"
    )]
    pub(super) const fn of(&self, class: Class) -> u16 {
        match class {
            Class::Continuation | Class::Space | Class::Newline | Class::End => 0,
            _ => self.class[class as usize],
        }
    }
}

// Fitted by least squares on texts of 20 kinds (prose in nine languages, code,
// JSON, logs, tables, identifiers) whose true counts are known.

pub(super) const O200K: Weights = Weights {
    class: [31, 228, 49, 308, 598, 235, 330, 353, 4322, 1212, 721, 721, 674, 640, 1833],
    word: 882,
    number: 1331,
    punctuation: 467,
    lines: 1290,
    space_digit: 1300,
    indent: 1113,
    camel: 800,
    jumble: 1900,
    foreign: 180,
};

pub(super) const CL100K: Weights = Weights {
    class: [20, 263, 55, 281, 753, 464, 875, 1266, 4215, 1687, 1011, 1014, 1163, 1213, 2939],
    word: 943,
    number: 1309,
    punctuation: 490,
    lines: 982,
    space_digit: 1472,
    indent: 1089,
    camel: 850,
    jumble: 1950,
    foreign: 0,
};

pub(super) const CLAUDE: Weights = Weights {
    class: [52, 225, 63, 521, 806, 529, 1122, 1318, 4282, 1752, 996, 886, 1296, 1284, 2671],
    word: 865,
    number: 1332,
    punctuation: 200,
    lines: 1821,
    space_digit: 131,
    indent: 1173,
    camel: 1589,
    jumble: 1589,
    foreign: 228,
};
