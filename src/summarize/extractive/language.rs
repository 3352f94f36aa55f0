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
        let mut scripts = Scripts::default();
        let mut words = Vec::new();
        for text in texts {
            scripts.add(text, SAMPLE);
            if words.len() < SAMPLE {
                words
                    .extend(text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1));
            }
            if scripts.letters >= SAMPLE {
                break;
            }
        }
        scripts.language().unwrap_or_else(|| latin(&words))
    }
}

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
}

impl Scripts {
    fn add(&mut self, text: &str, most: usize) {
        for c in text.chars().filter(|c| c.is_alphabetic()).take(most) {
            self.letters += 1;
            match c {
                'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{24F}' => self.latin += 1,
                '\u{400}'..='\u{52F}' => self.cyrillic += 1,
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
}

/// Tells languages in Latin script apart by their commonest words.
fn latin(words: &[&str]) -> Language {
    const CANDIDATES: [Language; 5] = [
        Language::English,
        Language::German,
        Language::French,
        Language::Spanish,
        Language::Portuguese,
    ];
    let mut best = (Language::English, 0);
    for language in CANDIDATES {
        let common = lexicon::set(lexicon::commonest(language));
        let hits =
            words.iter().filter(|word| common.contains(word.to_lowercase().as_str())).count();
        if hits > best.1 {
            best = (language, hits);
        }
    }
    // Prose has every fifth word or more from these lists; of code and of single
    // words nothing is known, and other languages share a few.
    if words.len() >= 40 && best.1 * 12 < words.len() { Language::Other } else { best.0 }
}
