//! Is the text a refusal?

use super::is_blank;

/// How refusals begin, in lower case, with straight apostrophes. The opening
/// alone decides: a summary may tell of an apology or of a refusal further on.
const OPENINGS: [&str; 62] = [
    "i can't assist",
    "i can't comply",
    "i can't help",
    "i can't provide",
    "i can't summarize",
    "i can't summarise",
    "i can't fulfill",
    "i cannot assist",
    "i cannot comply",
    "i cannot help",
    "i cannot provide",
    "i cannot summarize",
    "i cannot summarise",
    "i cannot fulfill",
    "i am not able to",
    "i'm not able to",
    "i am unable to",
    "i'm unable to",
    "i must decline",
    "i won't be able to",
    "i will not summarize",
    "i apologize, but i",
    "i apologise, but i",
    "my apologies, but i",
    "sorry, but i can't",
    "sorry, but i cannot",
    "sorry, i can't",
    "sorry, i cannot",
    "sorry, i am not able",
    "sorry, i'm not able",
    "sorry, i'm unable",
    "i'm sorry, but",
    "i'm sorry, i can",
    "i'm sorry. i can",
    "i am sorry, but",
    "i am sorry, i can",
    "unfortunately, i can't",
    "unfortunately, i cannot",
    "unfortunately, i'm unable",
    "unfortunately, i am unable",
    "as an ai language model, i c",
    "as an ai, i can",
    "es tut mir leid, aber",
    "tut mir leid, aber",
    "ich kann dabei nicht helfen",
    "je suis désolé, mais",
    "je suis désolée, mais",
    "désolé, mais je",
    "lo siento, pero no",
    "lo siento, no puedo",
    "desculpe, mas não",
    "sinto muito, mas não",
    "mi dispiace, ma non",
    "извините, но я не",
    "к сожалению, я не могу",
    "抱歉，我无法",
    "抱歉，我不能",
    "对不起，我无法",
    "对不起，我不能",
    "很抱歉，",
    "申し訳ありませんが",
    "죄송하지만",
];

/// Returns true where the text opens like a refusal, in one of the known ways
/// or in one of the host's.
pub(super) fn is_refusal(text: &str, more: &[String]) -> bool {
    let text = text.trim_start_matches(|c: char| {
        c.is_whitespace() || "\"'“”*_#>-".contains(c) || is_blank(c.encode_utf8(&mut [0; 4]))
    });
    let opening: String = text.chars().take(200).flat_map(char::to_lowercase).collect();
    let opening = opening.replace('’', "'");
    let known = OPENINGS.iter().any(|known| opening.starts_with(known));
    known
        || more.iter().any(|pattern| {
            !is_blank(pattern) && opening.starts_with(&pattern.to_lowercase().replace('’', "'"))
        })
}
