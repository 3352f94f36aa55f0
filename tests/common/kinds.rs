//! Texts of the kinds that conversations of agents are made of, all written
//! for this crate.

/// Returns each kind with a few texts of it.
pub(crate) fn kinds() -> Vec<(&'static str, Vec<String>)> {
    let mut random = Random(7);
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    vec![
        ("prose", own(PROSE)),
        ("chat", own(CHAT)),
        ("chinese", own(CHINESE)),
        ("japanese", own(JAPANESE)),
        ("korean", own(KOREAN)),
        ("russian", own(RUSSIAN)),
        ("arabic", own(ARABIC)),
        ("hindi", own(HINDI)),
        ("code", own(CODE)),
        ("markdown", own(MARKDOWN)),
        ("agent", own(AGENT)),
        ("emoji", own(EMOJI)),
        ("tool_result", (0..4).map(|n| tool_result(&mut random, 6 + n)).collect()),
        ("tool_call", (0..4).map(|n| tool_call(&mut random, n)).collect()),
        ("log", (0..4).map(|_| log(&mut random)).collect()),
        ("base64", (0..4).map(|n| base64(&mut random, 300 + 200 * n)).collect()),
        ("uuid", (0..4).map(|_| uuids(&mut random)).collect()),
        ("csv", (0..4).map(|_| csv(&mut random)).collect()),
        ("odd", own(ODD)),
    ]
}

/// Numbers that are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

const PROSE: &[&str] = &[
    "The harbour was quiet when the ferry came in, an hour late and with half of its lights out. \
     Nobody on the quay seemed surprised; the timetable, a sheet of paper behind cracked glass, had \
     been wrong since spring. We carried our bags past the fish market and up the stairs to the old \
     town, where a woman in a blue apron was sweeping the same three steps over and over again.",
    "A cache is a promise about the past: what was true a moment ago is probably true now. Most of \
     the difficulty lies in the word probably. When the promise is broken rarely, the failures hide; \
     when it is broken often, the cache is slower than having none. Engineers therefore measure not \
     only how fast a hit is, but how much a miss costs and who has to pay for it.",
    "By the end of the nineteenth century the valley had two railway stations, eleven mills and no \
     hospital. The council's minutes for 1893 mention the matter four times, always under \"any other \
     business\", and always with the same result: it was adjourned until the next meeting.",
];

const CHAT: &[&str] = &[
    "hey, can you move my dentist appointment to thursday? anything after 3 works, thanks!",
    "Sure! Dr. Okafor has a free slot on Thursday at 15:40. Shall I book it for you?",
    "yes pls. and remind me the evening before, i always forget :)",
    "I don't think that's right, the invoice says $1,249.00 but we agreed on $1,150. Could you check \
     what's been added?",
];

const CHINESE: &[&str] = &[
    "昨天下午我们在会议室讨论了新的产品计划，大家都同意先做手机版本，再考虑桌面版本。预算是三十万元，\
     负责人是王小明，截止日期定在六月底。",
    "请帮我查一下从上海到成都的高铁票，最好是周五晚上出发，二等座就可以，价格不要超过九百块。",
    "这个函数在输入为空的时候会返回错误，我们应该先检查长度，然后再访问第一个元素。",
];

const JAPANESE: &[&str] = &[
    "昨日の会議では、新しい画面の設計について話し合いました。来週の水曜日までに試作品を用意し、\
     利用者の意見を聞いてから次の段階に進む予定です。",
    "すみません、駅までの道を教えていただけますか。地図を見ても、どこにいるのか分からなくなってしまいました。",
    "サーバーのログを確認したところ、データベースへの接続が三回タイムアウトしていました。",
];

const KOREAN: &[&str] = &[
    "어제 회의에서 새로운 제품 계획을 논의했습니다. 다음 주 수요일까지 시제품을 준비하고 사용자 의견을 \
     들은 뒤에 다음 단계로 넘어가기로 했습니다.",
    "서버 로그를 확인해 보니 데이터베이스 연결이 세 번이나 시간 초과되었습니다. 설정을 다시 살펴봐야 할 것 같아요.",
    "안녕하세요, 내일 오후에 치과 예약을 변경하고 싶은데 가능한 시간이 있을까요?",
];

const RUSSIAN: &[&str] = &[
    "Вчера мы обсуждали новый план выпуска. Все согласились, что сначала нужно исправить ошибки в \
     хранилище, а уже потом добавлять новые возможности. Срок — конец июня.",
    "Подскажите, пожалуйста, как добраться от вокзала до музея? Говорят, трамвай сегодня не ходит.",
    "Сервер не отвечает уже десять минут, в журнале три тайм-аута подряд.",
];

const ARABIC: &[&str] = &[
    "ناقشنا أمس خطة الإصدار الجديد، واتفق الجميع على إصلاح الأخطاء أولا ثم إضافة الميزات الأخرى. \
     الموعد النهائي هو نهاية شهر يونيو.",
    "هل يمكنك أن تساعدني في العثور على أقرب صيدلية مفتوحة الآن؟",
    "تعذر الاتصال بقاعدة البيانات ثلاث مرات متتالية، ثم عاد الخادم إلى العمل.",
];

const HINDI: &[&str] = &[
    "कल की बैठक में हमने नई योजना पर चर्चा की। सब लोग इस बात पर सहमत थे कि पहले गलतियाँ ठीक की जाएँ और \
     उसके बाद नई सुविधाएँ जोड़ी जाएँ।",
    "क्या आप मुझे बता सकते हैं कि स्टेशन से संग्रहालय तक कैसे पहुँचा जाए?",
    "सर्वर पिछले दस मिनट से जवाब नहीं दे रहा है, कृपया लॉग देखिए।",
];

const CODE: &[&str] = &[
    "fn longest<'a>(lines: &[&'a str]) -> Option<&'a str> {\n    let mut best: Option<&str> = None;\n    \
     for line in lines {\n        if best.is_none_or(|other| line.len() > other.len()) {\n            \
     best = Some(line);\n        }\n    }\n    best\n}\n",
    "import csv\nfrom pathlib import Path\n\n\ndef totals(folder: Path) -> dict[str, float]:\n    \
     \"\"\"Adds up the amounts of all files.\"\"\"\n    sums: dict[str, float] = {}\n    for path in \
     sorted(folder.glob(\"*.csv\")):\n        with path.open() as file:\n            for row in \
     csv.DictReader(file):\n                sums[row[\"name\"]] = sums.get(row[\"name\"], 0.0) + \
     float(row[\"amount\"])\n    return sums\n",
    "export async function fetchOrders(userId, { limit = 20, signal } = {}) {\n  const url = new \
     URL(`/api/users/${encodeURIComponent(userId)}/orders`, BASE_URL);\n  url.searchParams.set('limit', \
     String(limit));\n  const response = await fetch(url, { signal });\n  if (!response.ok) {\n    throw \
     new HttpError(response.status, await response.text());\n  }\n  return response.json();\n}\n",
    "SELECT u.id, u.name, COUNT(o.id) AS orders\nFROM users u\nLEFT JOIN orders o ON o.user_id = \
     u.id\nWHERE u.created_at >= '2024-01-01'\nGROUP BY u.id, u.name\nHAVING COUNT(o.id) > 3\nORDER BY \
     orders DESC\nLIMIT 50;\n",
];

const MARKDOWN: &[&str] = &[
    "# Restoring a backup\n\n1. Stop the service: `systemctl stop ledger`.\n2. Copy the newest archive to \
     `/var/lib/ledger`.\n3. Check it:\n\n```bash\nledger verify --strict /var/lib/ledger/2024-05-01.tar\n\
     ```\n\n> **Note:** never restore into a folder that is *in use*.\n\n| option | default | meaning \
     |\n|---|---|---|\n| `--strict` | off | fail on warnings |\n| `--jobs` | 4 | threads |\n",
    "- [x] write the parser\n- [ ] handle `NaN`\n- [ ] docs\n\nSee [the design](docs/design.md#limits) for \
     why the limit is 1,024 bytes.\n",
];

const AGENT: &[&str] = &[
    "$ cargo test --lib\n   Compiling ledger v0.3.1\nrunning 14 tests\n..............\ntest result: ok. 14 \
     passed; 0 failed; 0 ignored; finished in 0.21s\n",
    "total 48\ndrwxr-xr-x  6 root root 4096 Mar  3 09:12 .\ndrwxr-xr-x 21 root root 4096 Mar  1 17:40 \
     ..\n-rw-r--r--  1 root root  812 Mar  3 09:12 Makefile\ndrwxr-xr-x  2 root root 4096 Mar  2 11:05 \
     src\n",
    "[File: src/parser.py (212 lines total)]\n(41 more lines above)\n42:    def advance(self, n=1):\n43:    \
     \x20   self.pos += n\n44:        if self.pos > len(self.text):\n45:            raise \
     EndOfInput(self.pos)\n(167 more lines below)\n",
    "Traceback (most recent call last):\n  File \"/srv/app/main.py\", line 88, in <module>\n    \
     run(load(sys.argv[1]))\n  File \"/srv/app/load.py\", line 17, in load\n    return \
     json.loads(text)\njson.decoder.JSONDecodeError: Expecting ',' delimiter: line 3 column 9 (char 41)\n",
];

const EMOJI: &[&str] = &[
    "🎉🎉 we did it!! 🚀 ship it 😂",
    "👩‍🚀👨‍👩‍👧‍👦🏳️‍🌈🇧🇷🇯🇵 👍🏽👍🏿 ❤️‍🔥",
    "see you at 8 🙂 bring snacks 🍿🍕 and the dog 🐶",
];

const ODD: &[&str] = &[
    "",
    " ",
    "   \n\n\t \r\n  \n",
    "a  b   c    d     e      f\n\n\n\n    g",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "<|endoftext|> <|im_start|>system<|im_sep|>",
    "I'LL they're WE'VE don't o'clock 'tis 's 'S",
    "e\u{301}e\u{301} \u{200d}\u{feff}\0\u{7}\u{2028}\u{a0}\u{3000}x\u{85}y",
    "\u{10ffff}\u{e000}\u{fffd}ǅŉﬁ½²³ⅷ१२३٤٥",
    "====----====////\\\\\\\\....,,,,;;;;!!!!????\n//\n\n//",
    "1234567890 12 345 6,789.01 0xDEADBEEF 1e-9 ١٢٣٤",
    "trailing space \nand\ttabs\t\t\tand \u{a0} more \r\r\n end   ",
];

const WORDS: [&str; 12] = [
    "order",
    "status",
    "customer",
    "delivered",
    "amount",
    "pending",
    "address",
    "invoice",
    "total",
    "currency",
    "warehouse",
    "tracking",
];

const fn word(random: &mut Random) -> &'static str {
    WORDS[random.below(WORDS.len() as u64) as usize]
}

fn tool_result(random: &mut Random, items: u64) -> String {
    let items: Vec<_> = (0..items)
        .map(|n| {
            format!(
                r#"{{"id": {}, "{}": "{}", "price": {}.{:02}, "in_stock": {}, "tags": ["{}", "{}"]}}"#,
                random.below(9_000_000),
                word(random),
                word(random),
                random.below(900),
                random.below(100),
                n % 2 == 0,
                word(random),
                word(random),
            )
        })
        .collect();
    format!(r#"{{"status": "ok", "count": {}, "items": [{}]}}"#, items.len(), items.join(", "))
}

fn tool_call(random: &mut Random, n: u64) -> String {
    format!(
        r#"{{"query":"{} {}","filters":{{"city":"Lisbon","max_price":{},"after":"2024-0{}-1{}"}},"limit":{},"user_id":"{}_{}_{:04}"}}"#,
        word(random),
        word(random),
        random.below(900),
        n + 1,
        n,
        random.below(50),
        word(random),
        word(random),
        random.below(10_000),
    )
}

fn log(random: &mut Random) -> String {
    let lines: Vec<_> = (0..8)
        .map(|n| {
            format!(
                "2024-03-0{}T1{}:{:02}:{:02}.{:03}Z {} http::server: {} {} in {} ms (request {:08x})",
                n % 9 + 1,
                n % 10,
                random.below(60),
                random.below(60),
                random.below(1000),
                ["INFO", "WARN", "DEBUG"][random.below(3) as usize],
                word(random),
                word(random),
                random.below(900),
                random.next() as u32,
            )
        })
        .collect();
    lines.join("\n")
}

fn base64(random: &mut Random, len: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..len).map(|_| char::from(LETTERS[random.below(64) as usize])).collect()
}

fn uuids(random: &mut Random) -> String {
    let uuid = |random: &mut Random| {
        let (a, b) = (random.next(), random.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            a as u32,
            a >> 48,
            a >> 32 & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    };
    (0..8).map(|_| uuid(random)).collect::<Vec<_>>().join("\n")
}

fn csv(random: &mut Random) -> String {
    let mut text = String::from("id,name,quantity,price,date\n");
    for n in 0..10 {
        text += &format!(
            "{},{},{},{}.{:02},2024-0{}-{:02}\n",
            random.below(99_999),
            word(random),
            random.below(500),
            random.below(2_000),
            random.below(100),
            n % 9 + 1,
            random.below(28) + 1
        );
    }
    text
}
