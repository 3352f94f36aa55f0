//! Which language a conversation is in, and the headings of a summary in it.

use super::lexicon;

/// The language that a summary is written in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Language {
    Chinese,
    English,
    French,
    German,
    Japanese,
    Korean,
    Portuguese,
    Russian,
    Spanish,
    /// Known to be none of these: marks stand in place of headings.
    Other,
}

/// The parts of a summary, in their order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Section {
    Requests,
    Decisions,
    Findings,
    State,
    Files,
    Facts,
}

impl Section {
    pub(super) const ALL: [Self; 6] =
        [Self::Requests, Self::Decisions, Self::Findings, Self::State, Self::Files, Self::Facts];

    /// Returns true for a text that would be read back as a heading.
    pub(super) fn is_heading(text: &str) -> bool {
        Language::section_of(text).is_some()
    }
}

impl Language {
    const ALL: [Self; 10] = [
        Self::Chinese,
        Self::English,
        Self::French,
        Self::German,
        Self::Japanese,
        Self::Korean,
        Self::Portuguese,
        Self::Russian,
        Self::Spanish,
        Self::Other,
    ];

    const fn headings(self) -> [&'static str; 6] {
        match self {
            Self::Chinese => ["请求：", "决定：", "发现：", "进展：", "文件与标识：", "事实："],
            Self::English => {
                ["Asked:", "Decisions:", "Findings:", "State:", "Files and identifiers:", "Facts:"]
            }
            Self::French => [
                "Demandes :",
                "Décisions :",
                "Constats :",
                "État :",
                "Fichiers et identifiants :",
                "Faits :",
            ],
            Self::German => [
                "Anliegen:",
                "Entscheidungen:",
                "Erkenntnisse:",
                "Stand:",
                "Dateien und Bezeichner:",
                "Fakten:",
            ],
            Self::Japanese => {
                ["依頼：", "決定事項：", "判明事項：", "状況：", "ファイルと識別子：", "事実："]
            }
            Self::Korean => ["요청:", "결정:", "발견:", "상태:", "파일과 식별자:", "사실:"],
            Self::Portuguese => [
                "Pedidos:",
                "Decisões:",
                "Constatações:",
                "Estado:",
                "Arquivos e identificadores:",
                "Fatos:",
            ],
            Self::Russian => [
                "Запросы:",
                "Решения:",
                "Выводы:",
                "Состояние:",
                "Файлы и идентификаторы:",
                "Факты:",
            ],
            Self::Spanish => [
                "Peticiones:",
                "Decisiones:",
                "Hallazgos:",
                "Situación:",
                "Archivos e identificadores:",
                "Hechos:",
            ],
            Self::Other => ["[?]", "[!]", "[*]", "[>]", "[/]", "[=]"],
        }
    }

    /// Returns the line that opens a section.
    pub(super) fn heading(self, section: Section) -> &'static str {
        Section::ALL
            .iter()
            .zip(self.headings())
            .find(|(other, _)| **other == section)
            .map_or("", |(_, heading)| heading)
    }

    /// Returns the section that a line opens, in whatever language.
    pub(super) fn section_of(line: &str) -> Option<Section> {
        let line = line.trim();
        Self::ALL.iter().find_map(|language| {
            let headings = language.headings();
            let at = headings.iter().position(|heading| *heading == line)?;
            Section::ALL.get(at).copied()
        })
    }

    /// Finds the language of what people and models wrote. Too little text to
    /// say counts as English.
    pub(super) fn detect<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let (scripts, words) = sample(texts);
        scripts.language().unwrap_or_else(|| Tally::of(&words).likeliest())
    }

    /// Returns the English name of the language, where there is no doubt.
    pub(super) fn detect_sure<'a>(texts: impl Iterator<Item = &'a str>) -> Option<&'static str> {
        let (scripts, words) = sample(texts);
        if scripts.letters < ENOUGH {
            return None;
        }
        match scripts.language() {
            Some(Self::Russian) if !scripts.russian() => None,
            Some(language) => language.name(),
            None => Tally::of(&words).sure().and_then(Self::name),
        }
    }

    const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Chinese => "Chinese",
            Self::English => "English",
            Self::French => "French",
            Self::German => "German",
            Self::Japanese => "Japanese",
            Self::Korean => "Korean",
            Self::Portuguese => "Portuguese",
            Self::Russian => "Russian",
            Self::Spanish => "Spanish",
            Self::Other => return None,
        })
    }
}

/// Counts scripts, and takes the words out, of as much as is looked at.
fn sample<'a>(texts: impl Iterator<Item = &'a str>) -> (Scripts, Vec<&'a str>) {
    let mut scripts = Scripts::default();
    let mut words = Vec::new();
    for text in texts {
        scripts.add(text, SAMPLE);
        if words.len() < SAMPLE {
            words.extend(text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1));
        }
        if scripts.letters >= SAMPLE {
            break;
        }
    }
    (scripts, words)
}

/// Of fewer letters, or fewer words, nothing is sure.
const ENOUGH: usize = 40;

/// How many letters are looked at.
const SAMPLE: usize = 20_000;

#[derive(Default)]
struct Scripts {
    letters: usize,
    latin: usize,
    han: usize,
    kana: usize,
    hangul: usize,
    cyrillic: usize,
    /// Cyrillic letters that Russian does not have.
    not_russian: usize,
    /// A letter that Russian has, and its nearest neighbours do not.
    yeru: usize,
}

impl Scripts {
    fn add(&mut self, text: &str, most: usize) {
        for c in text.chars().filter(|c| c.is_alphabetic()).take(most) {
            self.letters += 1;
            match c {
                'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{24F}' => self.latin += 1,
                '\u{400}'..='\u{52F}' => {
                    self.cyrillic += 1;
                    self.not_russian += usize::from(!matches!(c, 'А'..='я' | 'ё' | 'Ё'));
                    self.yeru += usize::from(c == 'ы');
                }
                '\u{3040}'..='\u{30FF}' => self.kana += 1,
                '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7AF}' => self.hangul += 1,
                '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{20000}'..='\u{323AF}' => {
                    self.han += 1;
                }
                _ => {}
            }
        }
    }

    /// The language where the script tells; none where it is Latin.
    fn language(&self) -> Option<Language> {
        // A Han character says as much as three letters or so, and names of
        // things are Latin everywhere.
        let dense = 3 * (self.han + self.kana) + 2 * self.hangul;
        if dense > self.latin {
            return Some(if 2 * self.hangul > 3 * (self.han + self.kana) {
                Language::Korean
            } else if self.kana * 8 > self.han {
                Language::Japanese
            } else {
                Language::Chinese
            });
        }
        if 2 * self.cyrillic > self.latin {
            return Some(Language::Russian);
        }
        let known = self.latin + self.cyrillic + self.han + self.kana + self.hangul;
        let unknown = self.letters.saturating_sub(known);
        (2 * unknown > self.latin).then_some(Language::Other)
    }

    /// Whether what is Cyrillic can only be Russian.
    const fn russian(&self) -> bool {
        self.not_russian == 0 && self.yeru > 0
    }
}

/// How many of the words are among the commonest of each language in Latin
/// script.
struct Tally {
    words: usize,
    best: (Language, usize),
    second: usize,
}

impl Tally {
    fn of(words: &[&str]) -> Self {
        const CANDIDATES: [Language; 5] = [
            Language::English,
            Language::German,
            Language::French,
            Language::Spanish,
            Language::Portuguese,
        ];
        let mut tally = Self { words: words.len(), best: (Language::English, 0), second: 0 };
        for language in CANDIDATES {
            let common = lexicon::set(lexicon::commonest(language));
            let hits =
                words.iter().filter(|word| common.contains(word.to_lowercase().as_str())).count();
            if hits > tally.best.1 {
                tally.second = tally.best.1;
                tally.best = (language, hits);
            } else {
                tally.second = tally.second.max(hits);
            }
        }
        tally
    }

    fn likeliest(&self) -> Language {
        // Prose has every fifth word or more from these lists; of code and of
        // single words nothing is known, and other languages share a few.
        let foreign = self.words >= ENOUGH && self.best.1 * 12 < self.words;
        if foreign { Language::Other } else { self.best.0 }
    }

    fn sure(&self) -> Option<Language> {
        let (language, hits) = self.best;
        let prose = self.words >= ENOUGH && hits * 4 >= self.words;
        (prose && hits >= self.second * 3 / 2).then_some(language)
    }
}
