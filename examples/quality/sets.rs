//! The texts, and what is asked of each.

use std::{collections::BTreeSet, fs, path::Path};

use regex_lite::Regex;
use serde::Deserialize;
use session_compaction::{Message, Role, formats};

use crate::{
    Result,
    judge::{Answer, Cut, cuts, has, sentences, text},
    methods::tokens,
};

/// A session with questions whose answers are known.
pub(crate) struct Asked {
    pub(crate) messages: Vec<Message>,
    pub(crate) answers: Vec<Answer>,
}

/// A session that is cut where the rest is known.
pub(crate) struct Cuttable {
    pub(crate) messages: Vec<Message>,
    pub(crate) cuts: Vec<Cut>,
}

#[derive(Deserialize)]
struct Domain {
    messages: Vec<Message>,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    gold: Vec<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Dialogue {
    messages: Vec<Message>,
}

/// What users tell an assistant about themselves, over several sessions.
pub(crate) fn conversations(root: &Path) -> Result<Vec<Asked>> {
    let domain = |name: &str| {
        let file = root.join(format!("tests/data/bfcl-memory/{name}.json"));
        Ok(asked(serde_json::from_str(&fs::read_to_string(file)?)?))
    };
    ["customer", "healthcare", "student"].into_iter().map(domain).collect()
}

fn asked(domain: Domain) -> Asked {
    let texts: Vec<String> = domain.messages.iter().map(text).collect();
    let said: Vec<&str> = texts.iter().flat_map(|text| sentences(text)).collect();
    let answer = |question: Question| {
        let told = |s: &&&str| question.gold.iter().any(|gold| has(s, gold));
        let source = question.source.unwrap_or_default().to_lowercase().replace('…', "...");
        let fragments: Vec<&str> =
            source.split("...").map(str::trim).filter(|part| part.len() > 8).collect();
        let start = |text: &str| text.chars().take(40).collect::<String>();
        let quoted = |s: &&&str| {
            let s = s.to_lowercase();
            fragments.iter().any(|part| s.contains(&start(part)) || part.contains(&start(&s)))
        };
        let mut sources: Vec<_> = said.iter().filter(told).filter(quoted).collect();
        if sources.is_empty() {
            sources = said.iter().filter(told).collect();
        }
        let sources: Vec<String> = sources.iter().map(|s| (**s).to_owned()).collect();
        (!sources.is_empty()).then_some(Answer { spellings: question.gold, sources })
    };
    let answers = domain.questions.into_iter().filter_map(answer).collect();
    Asked { messages: domain.messages, answers }
}

/// Sessions of two coding agents.
pub(crate) fn coding(root: &Path) -> Result<Vec<Cuttable>> {
    let mut files = vec![root.join("examples/data/coding-session.jsonl")];
    for entry in fs::read_dir(root.join("tests/data/claude-code"))? {
        files.push(entry?.path());
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let messages = formats::import(&fs::read(file)?)?.messages;
        if messages.iter().map(|message| tokens(&text(message))).sum::<u64>() > 6_000 {
            found.push(Cuttable { cuts: cuts(&messages, tokens), messages });
        }
    }
    Ok(found)
}

/// Chinese dialogues, four to a session, asked for what the user wanted.
pub(crate) fn chinese(root: &Path) -> Result<Vec<Asked>> {
    let file = root.join("tests/data/crosswoz-zh.json");
    let dialogues: Vec<Dialogue> = serde_json::from_str(&fs::read_to_string(file)?)?;
    let session = |four: &[Dialogue]| {
        let mut values = BTreeSet::new();
        for dialogue in four {
            values.extend(slots(&dialogue.messages)?);
        }
        let messages = four.iter().flat_map(|dialogue| dialogue.messages.clone()).collect();
        let answer = |value: String| Answer { spellings: vec![value], sources: Vec::new() };
        Ok(Asked { messages, answers: values.into_iter().map(answer).collect() })
    };
    dialogues.chunks(4).map(session).collect()
}

/// The values that a user states: amounts, scores and times, kinds of hotel,
/// services (the data set's own list), dishes, and names that the assistant said too.
fn slots(messages: &[Message]) -> Result<Vec<String>> {
    let patterns = [
        r"([0-9][0-9.]*(?:\s*-\s*[0-9.]+)?(?:元|分|小时|天))",
        "((?:经济|舒适|高档|豪华)型|免费)",
        "(接机服务|早餐服务|洗衣服务|叫醒服务|健身房|会议室|棋牌室|宽带上网|吹风机|24小时热水|残疾人设施|接待外宾|中式餐厅|收费停车位|游泳池|桑拿|酒吧|商务中心|无烟房|行李寄存)",
        "吃(?:到)?([^，。？的这到]{3,8}?)(?:这道菜|的餐馆)",
        r"名叫([^，。？]{2,18}?)的(?:餐馆|景点|酒店)",
    ];
    let mut found = Vec::new();
    let (mut users, mut others) = (String::new(), String::new());
    for message in messages {
        let to = if message.role() == Role::User { &mut users } else { &mut others };
        to.push_str(&text(message));
        to.push('\n');
    }
    for pattern in patterns {
        for hit in Regex::new(pattern)?.captures_iter(&users) {
            found.extend(hit.get(1).map(|value| value.as_str().to_owned()));
        }
    }
    const PARTS: &str =
        "的了吗呢啊吧是在有去到从和就您我你他她它这那哪家个请想找要给帮多少什么，。？！、：,;；\n ";
    const NO_NAMES: [&str; 18] = [
        "周边", "地址", "电话", "评分", "价格", "游玩", "推荐", "消费", "服务", "类型", "时间",
        "出租", "用餐", "方便", "客气", "问题", "景点", "餐馆",
    ];
    let name = |piece: &&str| {
        let long = piece.chars().count() >= 4;
        long && others.contains(*piece)
            && !NO_NAMES.iter().any(|word| piece.contains(word))
            && !piece.chars().any(|c| c.is_ascii_digit())
    };
    found.extend(users.split(|c| PARTS.contains(c)).filter(name).map(str::to_owned));
    Ok(found)
}
