use proptest::prelude::*;

use super::{
    facts::{Kind, facts},
    language::{Language, Section},
    lexicon::Lexicon,
    sentences::sentences,
    snippets::{Context, snippets},
    telegraph::{Form, telegraph},
    *,
};
use crate::tokens::{ByteEstimate, CharsPerToken};

fn summary(messages: &[Message], existing: Option<&str>, budget: u64) -> String {
    let messages: Vec<_> = messages.iter().cloned().map(Arc::new).collect();
    let budget = Tokens::from_tokens(budget);
    extract(&messages, existing, budget, &ByteEstimate::default(), &Wishes::default()).unwrap()
}

#[test]
fn conversation_keeps_names_and_numbers() {
    let mut talk = vec![Message::user("Hi! My name is Priya Raman and I have 3 cats.")];
    for _ in 0..40 {
        talk.push(Message::assistant(
            "That sounds great, thank you so much for telling me about it!",
        ));
        talk.push(Message::user("Oh well, I think it was a nice day and we had a good time."));
    }
    let text = summary(&talk, None, 60);
    assert!(text.contains("Priya Raman") && text.contains("3 cats"), "{text}");
}

#[test]
fn one_tool_call_makes_no_agent_of_a_conversation() {
    let mut talk = vec![
        Message::user("My daughter Leonie is allergic to walnuts."),
        Message::assistant("").with_tool_call("1", "get_time", r#"{"time_zone":"Europe/Rome"}"#),
        Message::tool_result("1", r#"{"time_now":"2026-03-04T10:00:00"}"#),
    ];
    talk.extend(
        (0..40).map(|_| {
            Message::user("Well, it was such a nice day and we had a good time together.")
        }),
    );
    let text = summary(&talk, None, 60);
    assert!(text.contains("Leonie") && text.contains("walnuts"), "{text}");
}

#[test]
fn relative_dates_stand_next_to_their_day() {
    let day = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_714_953_661);
    let talk = [
        Message::user("I met Tom yesterday.").with_time(day),
        Message::user("Tom likes chess.").with_time(day),
    ];
    let text = summary(&talk, None, 100);
    assert!(text.contains("[2024-05-06] I met Tom yesterday"), "{text}");
    assert_eq!(text.matches("2024").count(), 1, "{text}");
}

#[test]
fn agent_session_keeps_files_requests_and_failures() {
    let talk = [
        Message::user("Please fix the login timeout in src/auth/session.rs"),
        Message::assistant("").with_tool_call("1", "read", r#"{"path":"src/auth/session.rs"}"#),
        Message::tool_result(
            "1",
            "12→const LOGIN_TIMEOUT_MS: u64 = 30;\n13→fn expire_session() {}",
        ),
        Message::assistant("").with_tool_call("2", "bash", r#"{"command":"cargo test"}"#),
        Message::tool_error(
            "2",
            "running 4 tests\nerror[E0425]: cannot find value LOGIN_TIMEOUT_S",
        ),
    ];
    let text = summary(&talk, None, 150);
    for fact in ["src/auth/session.rs", "LOGIN_TIMEOUT_MS", "E0425", "Asked:\nPlease fix"] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
}

#[test]
fn headings_are_in_the_language_of_the_text() {
    let cases = [
        ("我想找一家人均消费100元的餐馆，请推荐。", Language::Chinese),
        ("来週の会議は火曜日の午後3時に変更してください。", Language::Japanese),
        ("다음 주 회의를 화요일 오후 3시로 변경해 주세요.", Language::Korean),
        ("Перенесите, пожалуйста, встречу на вторник в 15 часов.", Language::Russian),
        (
            "Bitte verschieben Sie das Treffen auf Dienstag um 15 Uhr, das ist mir lieber.",
            Language::German,
        ),
        (
            "Je voudrais déplacer la réunion à mardi, est-ce que vous pouvez le faire pour nous ?",
            Language::French,
        ),
        (
            "Por favor, mueva la reunión al martes a las 15, que es lo mejor para los dos.",
            Language::Spanish,
        ),
        (
            "Por favor, você pode mudar a reunião para terça às 15, que não é um feriado?",
            Language::Portuguese,
        ),
        ("กรุณาเลื่อนการประชุมไปวันอังคารเวลา 15 นาฬิกา", Language::Other),
        ("أرجو تأجيل الاجتماع إلى يوم الثلاثاء الساعة 15", Language::Other),
        ("Please move the meeting to Tuesday at 15.", Language::English),
    ];
    for (text, language) in cases {
        assert_eq!(Language::detect([text].into_iter()), language, "{text}");
        let summary = summary(&[Message::user(text)], None, 200);
        let heading = summary.lines().next().unwrap();
        assert!(
            Section::ALL.iter().any(|section| language.heading(*section) == heading),
            "{summary}"
        );
        assert!(summary.lines().count() > 1, "{summary}");
    }
}

#[test]
fn a_language_is_named_where_there_is_no_doubt() {
    let sure = [
        (
            "Could you please move the meeting to Tuesday at 15, and tell them that it is the last time that we do so?",
            "English",
        ),
        (
            "Bitte verschieben Sie das Treffen auf Dienstag um 15 Uhr, und sagen Sie ihnen, dass es das letzte Mal ist.",
            "German",
        ),
        (
            "Je voudrais déplacer la réunion à mardi, et il faut leur dire que c'est la dernière fois que nous le faisons.",
            "French",
        ),
        (
            "Por favor, mueva la reunión al martes a las 15, y dígales que es la última vez que lo hacemos con ellos.",
            "Spanish",
        ),
        (
            "Por favor, você pode mudar a reunião para terça às 15, e dizer que não é para eles uma coisa de todos os dias?",
            "Portuguese",
        ),
        ("Перенесите, пожалуйста, встречу на вторник в 15 часов, чтобы мы успели.", "Russian"),
        ("请把会议改到星期二下午三点。", "Chinese"),
        ("来週の会議は火曜日の午後3時に変更してください。", "Japanese"),
        ("다음 주 회의를 화요일 오후 3시로 변경해 주세요.", "Korean"),
    ];
    for (text, language) in sure {
        assert_eq!(Language::detect_sure([text; 4].into_iter()), Some(language), "{text}");
    }
    let unsure = [
        "ok",
        "Перенесіть, будь ласка, зустріч на вівторок о 15 годині, щоб ми встигли.",
        "Моля, преместете срещата за вторник в 15 часа, за да успеем всички заедно.",
        "Vorrei spostare la riunione a martedì, e bisogna dire loro che è l'ultima volta che lo facciamo per loro.",
        "Kunt u de vergadering naar dinsdag om 15 uur verplaatsen, en hun zeggen dat het de laatste keer is?",
        "Kan du flytta mötet till tisdag klockan 15 och säga till dem att det är sista gången vi gör så?",
        "Voldria canviar la reunió a dimarts, i cal dir-los que és la darrera vegada que ho fem amb ells.",
        "fn main() { let x = read(path)?; println!(\"{x}\"); } impl Display for Error { type Output = usize; }",
        "กรุณาเลื่อนการประชุมไปวันอังคารเวลา 15 นาฬิกา",
    ];
    for text in unsure {
        assert_eq!(Language::detect_sure([text; 4].into_iter()), None, "{text}");
    }
}

#[test]
fn headings_are_read_back() {
    for section in Section::ALL {
        for language in [Language::English, Language::Chinese, Language::Other, Language::French] {
            assert_eq!(Language::section_of(language.heading(section)), Some(section));
        }
    }
    assert_eq!(Language::section_of("Facts: none"), None);
}

#[test]
fn earlier_summary_lives_on() {
    let noise = |round: u32| {
        (0..30).map(move |i| {
            Message::user(format!(
                "Today we talked a little about topic {} of many.",
                round * 30 + i
            ))
        })
    };
    let first: Vec<_> =
        std::iter::once(Message::user("My passport number is X4471902 and I fly to Lisbon."))
            .chain(noise(0))
            .collect();
    let mut text = summary(&first, None, 120);
    for round in 1..6 {
        text = summary(&noise(round).collect::<Vec<_>>(), Some(&text), 120);
    }
    assert!(text.contains("X4471902") && text.contains("Lisbon"), "{text}");
    assert_eq!(text.lines().filter(|line| *line == "Facts:").count(), 1, "{text}");
}

#[test]
fn foreign_summary_is_an_input() {
    let text = summary(
        &[Message::user("And now the weather.")],
        Some("The user's order ORD-5512 was refunded. They live in Oslo."),
        80,
    );
    assert!(text.contains("ORD-5512") && text.contains("Oslo"), "{text}");
}

#[test]
fn telegrams_keep_negations_numbers_and_facts() {
    let lexicon = Lexicon::of(Language::English);
    let text = telegraph(
        "I really do not want the 3.5 inch drive in src/a/the_file.rs, and it's never been used!",
        &lexicon,
        Form::Tight,
    );
    for kept in ["not", "3.5 inch drive", "src/a/the_file.rs", "never"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!text.contains("really"), "{text}");
}

#[test]
fn sentences_of_any_script() {
    let cases: [(&str, &[&str]); 5] = [
        ("One. Two! Three?", &["One.", "Two!", "Three?"]),
        ("Dr. Smith paid $3.50 vs. $4.", &["Dr. Smith paid $3.50 vs. $4."]),
        ("你好。今天？好！", &["你好。", "今天？", "好！"]),
        ("यह है। वह था।", &["यह है।", "वह था।"]),
        ("...", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(sentences(text, 200), expected);
    }
}

#[test]
fn facts_have_kinds() {
    let cases = [
        ("src/main.rs", Kind::Path),
        ("README.md", Kind::File),
        ("getThemeColor", Kind::Camel),
        ("max_results", Kind::Snake),
        ("MAX_RESULTS", Kind::Constant),
        ("std::sync::Arc", Kind::Member),
        ("--no-verify", Kind::Flag),
        ("https://example.org/a?b", Kind::Url),
        ("HAT136", Kind::Code),
        ("3fa85f64-5717-4562", Kind::Hash),
        ("1.24.3", Kind::Number),
        ("v1.24.3", Kind::Version),
        ("12345", Kind::Number),
    ];
    for (text, kind) in cases {
        let found: Vec<_> = facts(text).map(|fact| (fact.text, fact.kind)).collect();
        assert_eq!(found, [(text, kind)]);
    }
    for none in ["plain", "well-known", "e.g.", "7", "</div>", "。。。"] {
        assert_eq!(facts(none).count(), 0, "{none}");
    }
    let mixed: Vec<_> = facts("请修改config.yaml里的max_size。").map(|fact| fact.text).collect();
    assert_eq!(mixed, ["config.yaml", "max_size"]);
}

#[test]
fn five_compactions_lose_little() {
    let people = ["Ada", "Bruno", "Chidi", "Dana", "Emil", "Farah", "Goro", "Hana", "Ivo", "Jun"];
    let talk: Vec<_> = people
        .iter()
        .enumerate()
        .flat_map(|(i, name)| {
            let filler =
                "Anyway, it was a really nice day and we had such a good time together, you know.";
            let fact =
                format!("By the way, my cousin {name} moved into flat {} last week.", 100 + 7 * i);
            [fact.as_str(), filler, filler, filler].map(Message::user)
        })
        .collect();
    let kept = |text: &str| {
        let whole = |(i, name): (usize, &&str)| {
            text.contains(name) && text.contains(&format!("{}", 100 + 7 * i))
        };
        people.iter().enumerate().filter(|fact| whole(*fact)).count()
    };
    let once = summary(&talk, None, 180);
    let mut often = String::new();
    for part in talk.chunks(8) {
        often = summary(part, Some(&often), 180);
    }
    assert_eq!((kept(&once), kept(&often)), (10, 10), "{once}\n--\n{often}");
}

#[test]
fn chinese_conversation_keeps_what_the_user_stated() {
    let talk = [
        Message::user(
            "你好，我想找家人均消费在100-150元的餐馆吃驴杂汤这道菜，请给我推荐一家餐馆用餐吧。",
        ),
        Message::assistant(
            "抱歉，消费价格没有符合您要求的，推荐您去人均消费68元的讲礼驴肉馆用餐。",
        ),
        Message::user("好的，吃完饭我想找一个评分4.5分以上的景点游玩，给我推荐一个吧。"),
        Message::assistant("推荐您去八达岭长城游玩。"),
        Message::user("好的，谢谢你了啊。"),
        Message::assistant("不客气。"),
    ];
    let text = summary(&talk, None, 60);
    for value in ["100-150元", "驴杂汤", "4.5分"] {
        assert!(text.contains(value), "{value}: {text}");
    }
    assert!(!text.contains("谢谢") && !text.contains("Asked"), "{text}");
}

#[test]
fn no_room_gives_what_fits() {
    let talk = [Message::user("Remember the gate code 48151 for the garage, please.")];
    assert_eq!(summary(&talk, None, 0), "");
    let short = summary(&talk, None, 6);
    assert!(!short.is_empty() && !short.contains("Asked:"), "{short}");
}

#[test]
fn long_lines_and_deep_json_take_no_time() {
    let line = "a.bc(dE,f_g);".repeat(40_000);
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let talk = [
        Message::assistant("").with_tool_call("1", "run", deep.clone()),
        Message::tool_result("1", line.clone()),
        Message::tool_result("1", deep),
        Message::user(line),
        Message::user("x".repeat(500_000)),
    ];
    assert!(summary(&talk, None, 100).contains("f_g"));
}

#[test]
fn protected_strings_come_out_in_full_or_the_call_fails() {
    let mut talk = vec![
        Message::user("About the refund of the parcel AB-1234, and so on."),
        Message::assistant("").with_tool_call("1", "pay", r#"{"to":"the \"old\" account"}"#),
        Message::tool_result("1", "queued as AB-12345"),
    ];
    talk.extend((0..60).map(|i| Message::user(format!("Ms. Nkemelu wants item {i} by June."))));
    let talk: Vec<_> = talk.into_iter().map(Arc::new).collect();
    let within = |budget: u64, strings: &[&str]| {
        let protected = strings.iter().map(|string| (*string).to_owned()).collect();
        let wishes = Wishes { form: None, protected };
        let budget = Tokens::from_tokens(budget);
        extract(&talk, None, budget, &ByteEstimate::default(), &wishes)
    };
    let strings = ["AB-1234", "refund of the parcel", "the \"old\" account", "never said"];
    let text = within(60, &strings).unwrap();
    assert!(strings[..3].iter().all(|string| text.contains(string)), "{text}");
    assert!(text.replace("AB-12345", "").contains("AB-1234"), "{text}");
    assert!(!text.contains("never said"), "{text}");

    let long = "Ms. Nkemelu wants item 7 by June.";
    let over = ByteEstimate::default().text(long).count() - 4;
    let error = within(4, &[long]).unwrap_err().to_string();
    assert!(error.contains(&format!("bound of 4 tokens by {over};")), "{error}");
}

#[test]
fn forms_are_a_hosts_to_choose() {
    let talk = [Arc::new(Message::user("I have been living in the city of Turin for 12 years."))];
    let within = |form: Option<Form>, budget: u64| {
        let wishes = Wishes { form, protected: Arc::default() };
        let budget = Tokens::from_tokens(budget);
        extract(&talk, None, budget, &ByteEstimate::default(), &wishes).unwrap()
    };
    assert!(within(Some(Form::Full), 20).contains("I have been living in the city of Turin"));
    assert!(within(Some(Form::Tight), 200).contains("living city Turin 12 years"));
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = prop_oneof![
        "\\PC{0,120}",
        "[a-zA-Z0-9_./:\\\\\"'{}\\[\\]=,;<>| \n\t-]{0,160}",
        "(你好|世界|。|，|3|ไทย|العربية|👩‍🚀|é|\u{301}|\n| ){0,40}",
        "([a-z]{1,9}[ ._/(\"-]){0,30}",
    ];
    (0..5, text).prop_map(|(kind, text)| match kind {
        0 => Message::user(text),
        1 => Message::assistant(text),
        2 => Message::assistant("").with_tool_call("c", "tool", text),
        3 => Message::assistant("").with_tool_call(
            "c",
            "edit",
            format!("{{\"path\":{text:?},\"n\":1}}"),
        ),
        _ => Message::tool_result("c", text),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_above_the_bound_and_the_same_again(
        messages in prop::collection::vec(any_message(), 0..20),
        existing in prop::option::of("(Facts:\n|Files and identifiers:\n|a/b.rs: fooBar · x_y\n|\\PC{0,40}\n){0,6}"),
        budget in 0..300_u64,
        protected in prop::collection::vec("[a-c ./]{1,3}", 0..4),
    ) {
        let said = messages.iter().map(Message::text).collect::<Vec<_>>().join("\n");
        let wishes = Wishes { form: None, protected: protected.clone().into() };
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let budget = Tokens::from_tokens(budget);
        for counter in [&ByteEstimate::default() as &dyn TokenCounter, &CharsPerToken::default()] {
            let again = || extract(&messages, existing.as_deref(), budget, counter, &wishes);
            match again() {
                Ok(text) => {
                    prop_assert!(counter.text(&text) <= budget);
                    for string in &protected {
                        prop_assert!(text.contains(string) || !said.contains(string));
                    }
                    prop_assert_eq!(text, again().unwrap());
                }
                Err(error) => {
                    let strings = counter.text(&protected.join("; "));
                    prop_assert!(strings > budget, "{}", error);
                }
            }
        }
    }

    #[test]
    fn snippets_are_substrings_that_cut_no_fact(line in "[a-zA-Z0-9_./:\"'(){}=,; é你👩-]{0,300}") {
        let found: Vec<_> = facts(&line).collect();
        for context in [Context::Bare, Context::Words] {
            let cut = snippets(&line, &found, context);
            prop_assert_eq!(cut.iter().map(|snippet| snippet.facts.len()).sum::<usize>(), found.len());
            for snippet in cut {
                let whole = line.match_indices(snippet.text).any(|(at, text)| {
                    let inside = |at: usize| {
                        let (before, behind) = line.split_at(at);
                        before.ends_with(|c: char| c.is_ascii_alphanumeric())
                            && behind.starts_with(|c: char| c.is_ascii_alphanumeric())
                    };
                    !inside(at) && !inside(at + text.len())
                });
                prop_assert!(whole, "{:?}", snippet.text);
                for fact in snippet.facts {
                    prop_assert!(snippet.text.contains(fact.text), "{:?} {:?}", snippet.text, fact);
                }
            }
        }
    }
}
