//! The small vocabularies: function words, words of little news, cues.

use std::collections::{HashMap, HashSet};

use super::language::Language;

/// What a language's words are good for. Words that no list knows count by
/// their rarity in the conversation alone.
pub(super) struct Lexicon {
    pub(super) english: bool,
    /// Carry no content: never a concept, dropped in telegraphic form.
    pub(super) function: HashSet<&'static str>,
    /// Function words that tie content together: dropped only when very tight.
    pub(super) ties: HashSet<&'static str>,
    /// Words of everyday that say little.
    pub(super) common: HashSet<&'static str>,
    pub(super) dates: HashSet<&'static str>,
    /// What a speaker says of herself.
    pub(super) speaker: HashSet<&'static str>,
    /// What a courtesy opens with.
    pub(super) courtesies: HashSet<&'static str>,
    pub(super) requests: Vec<&'static str>,
    pub(super) decisions: Vec<&'static str>,
    pub(super) findings: Vec<&'static str>,
    pub(super) states: Vec<&'static str>,
    /// Phrases that go in telegraphic form, of languages without spaces.
    pub(super) fillers: HashMap<char, Vec<&'static str>>,
}

impl Lexicon {
    pub(super) fn of(language: Language) -> Self {
        let lists = lists(language);
        let cues = |text: &'static str| text.split('|').filter(|cue| !cue.is_empty()).collect();
        Self {
            english: language == Language::English,
            function: set(lists.function),
            ties: set(lists.ties),
            common: set(lists.common),
            dates: set(lists.dates),
            speaker: set(lists.speaker),
            courtesies: set(lists.courtesies),
            requests: cues(lists.requests),
            decisions: cues(lists.decisions),
            findings: cues(lists.findings),
            states: cues(lists.states),
            fillers: by_first(lists.fillers),
        }
    }
}

fn by_first(phrases: &'static str) -> HashMap<char, Vec<&'static str>> {
    let mut found: HashMap<char, Vec<&'static str>> = HashMap::new();
    for phrase in phrases.split('|') {
        if let Some(first) = phrase.chars().next() {
            found.entry(first).or_default().push(phrase);
        }
    }
    found
}

pub(super) fn set(words: &'static str) -> HashSet<&'static str> {
    words.split_whitespace().collect()
}

/// Returns words that nearly every text in the language has.
pub(super) fn commonest(language: Language) -> &'static str {
    match language {
        Language::German => {
            "der die das und ist nicht ich sie wir mit ein eine auf für von zu im den dem es auch wie bitte kann"
        }
        Language::French => {
            "le la les des et est une un je vous nous pas dans pour que qui sur avec du au il elle ce cette"
        }
        Language::Spanish => {
            "el la los las y es una un que no en por para con del se lo como me mi su está al pero más"
        }
        Language::Portuguese => {
            "o a os as e é uma um que não em por para com do da no na se eu você está ao mas mais"
        }
        _ => {
            "the and is not i you we with a an on for of to in it this that as can please are be have was"
        }
    }
}

struct Lists {
    function: &'static str,
    ties: &'static str,
    common: &'static str,
    dates: &'static str,
    speaker: &'static str,
    courtesies: &'static str,
    requests: &'static str,
    decisions: &'static str,
    findings: &'static str,
    states: &'static str,
    fillers: &'static str,
}

const NONE: Lists = Lists {
    function: "",
    ties: "",
    common: "",
    dates: "",
    speaker: "",
    courtesies: "",
    requests: "",
    decisions: "",
    findings: "",
    states: "",
    fillers: "",
};

const ENGLISH: Lists = Lists {
    speaker: "i i'm i've i'd i'll me my mine we we're we've our us",
    function: "a an the i i'm i've i'd i'll me my mine myself you you're you've you'd you'll your yours he he's she she's \
        him his her hers it it's its itself we we're we've we'd we'll us our ours they they're they've they'd them their theirs \
        this that that's these those there there's here is am are was were be been being do does did done doing have has had \
        having will would could should may might shall must can and or but so if then than as because since while though \
        although whether which who whom whose what when where why how let let's just really very quite pretty even still \
        actually basically literally honestly definitely certainly absolutely totally truly simply especially particularly \
        generally usually probably maybe perhaps somehow somewhat rather kind sort bit lot lots also too well oh hey hi hello \
        yeah yes okay ok anyway anyways basically obviously of course like now such any some all both each every either \
        much many more most other another same own one's get gets got getting gotten go goes going went make makes made \
        making know think guess feel feels felt say says said tell told mean means want wanted wants need try trying tried \
        able seem seems seemed thing things something anything everything stuff way ways into about again ever always \
        who've what's who's how's where's it'd that'd they'll gonna wanna only almost already yet soon please thanks thank \
        appreciate wow sure glad hope hoping look looking forward",
    ties: "of to in on at for with from by up down out off over through around during between across within along toward towards",
    common: "good great nice amazing awesome wonderful fantastic perfect best better bad worst big huge small little large long \
        short new old first last next few several whole full real right wrong different similar sure important special main \
        particular certain possible able ready happy excited glad sad sorry worried nervous curious interested interesting \
        fun cool super love loved loves like liked likes enjoy enjoyed hate prefer wish hope wonder believe consider decide \
        find found give given gave take taken took taking come came coming keep kept start started starting stop end ended \
        finish help helped helping use used using work worked working works play put set run ran turn turned move moved \
        show showed shown see seen saw hear heard ask asked asking talk talked talking call called share shared learn \
        learned learning understand realize notice remember forget believe expect plan planning check checking add added \
        change changed bring brought leave left stay live lives lived happen happened happening become became include \
        includes including time times day days week weeks month months year years today tonight moment people person \
        someone anyone everyone everybody friend friends guy guys place places part parts point points side kind type \
        types number fact idea ideas reason problem problems issue issues question questions answer answers case example \
        life world home experience experiences process situation chance option options sense level end hand mind eye eyes \
        head heart job money bit ton couple handful rest kinds overall recently lately currently eventually finally \
        suddenly quickly easily hard easy simple simply far away back together apart enough less least instead else \
        despite however therefore moreover plus per via without upon according regarding detail details info information \
        appreciate support team company product products service customer order extra additional specific overall",
    dates: "january february march april june july august september october november december monday tuesday wednesday \
        thursday friday saturday sunday yesterday tomorrow today tonight morning afternoon evening night noon midnight \
        weekend weekly daily monthly yearly annual last next ago am pm spring summer fall autumn winter semester",
    courtesies: "hey hi hello thanks thank wow sounds congrats congratulations great awesome nice cool sure okay ok welcome \
        yeah yes oh haha anyway good glad appreciate cheers bye perfect certainly absolutely",
    requests: "please |can you|could you|would you|i need you|i want you|i'd like|help me|let me know|make sure|i would like|we need to|we should",
    decisions: "decided|decision|let's go with|agreed|must not|must be|you must|never use|always use|instead of using|rather than using|prefer |do not |don't use|only use|approved|rejected|chose |choose |going with|go with |policy",
    findings: "found |because |root cause|turns out|the problem|the issue|the bug|caused by|due to|discovered|it seems|confirmed|the reason|means that|error",
    states: "done|fixed|completed|finished|implemented|passes|passed|failed|failing|now works|working|next step|todo|remaining|in progress|blocked|still need|committed|updated|added|created|removed",
    ..NONE
};

const CHINESE: Lists = Lists {
    speaker: "我 咱",
    function: "的 了 呢 吗 吧 啊 呀 哦 嗯 我 你 您 他 她 它 们 是 在 和 与 也 都 就 还 很 这 那 有 一 个 家 要 会 能 可 以 请 给 帮 想 去 为 到 对 好",
    ties: "",
    common: "推 荐 知 道 告 诉 问 什 么 哪 谢 客 气",
    dates: "年 月 日 周 天 昨 今 明",
    courtesies: "谢 好 您 你 不",
    requests: "请|帮我|我想|我要|需要|能不能|可以吗|推荐|告诉我|麻烦",
    decisions: "决定|必须|不要|改为|选择|确定|同意|就这|那就|应该",
    findings: "发现|原因|因为|由于|问题是|错误|原来",
    states: "完成|已经|修复|失败|成功|正在|下一步|待办|通过",
    fillers: "你好，|您好，|你好!|你好！|您好！|请问|麻烦你|麻烦您|麻烦|谢谢你|谢谢您|谢谢|不客气|好的，|好，|嗯，|行啊，|行，|那么|请给我|请帮我|给我|帮我|我还想要|我还想|我想要|我想|我要|我打算|找一家|找一个|找家|找个|推荐一家|推荐一个|推荐个|推荐您去|建议您去|一下|的话|了啊|了吧|啊|呀|呢|吗|吧|的|请你|请您|请|就是|这个|那个|这家|那家|一家|一个|是不是|知道|可以|有没有|帮我们|给我们|我们|咱们|我|你们|你|您|了，|了。|了！|吗？|吧。|吧！|真是|太好了|好的|不错|想要|想去|打算|或者",
};

const GERMAN: Lists = Lists {
    speaker: "ich mich mir mein meine meinen wir uns unser",
    function: "der die das den dem des ein eine einen einem einer eines und oder aber ich du er sie es wir ihr mich mir dich \
        dir ihn ihm uns euch mein meine dein deine sein seine ihre ihren unser ist bin bist sind war waren wird werden wurde \
        hat habe haben hatte kann können könnte soll sollte muss darf dass wenn als wie so auch noch schon nur sehr ganz \
        eigentlich halt eben mal doch ja bitte danke hallo man sich da hier dann denn weil ob was wer wo",
    ties: "von zu in im am an auf für mit aus bei nach vor über unter durch um zum zur",
    common: "gut gute neu machen gemacht geht gehen gibt sagen zeit tag viel mehr immer",
    dates: "januar februar märz april mai juni juli august september oktober november dezember montag dienstag mittwoch \
        donnerstag freitag samstag sonntag gestern heute morgen letzte nächste uhr",
    courtesies: "danke hallo bitte gern gerne super toll klar ja",
    requests: "bitte |kannst du|können sie|könntest du|hilf mir|ich möchte|ich brauche",
    decisions: "entschieden|beschlossen|wir werden|ich werde|muss |müssen |nicht |statt |lieber|vereinbart",
    findings: "gefunden|weil |ursache|das problem|fehler|liegt an|stellt sich heraus",
    states: "fertig|erledigt|behoben|fehlgeschlagen|funktioniert|als nächstes|offen|umgesetzt",
    ..NONE
};

const FRENCH: Lists = Lists {
    speaker: "je j'ai me mon ma mes nous notre nos",
    function: "le la les l' un une des du de d' et ou mais je j'ai tu il elle on nous vous ils elles me te se mon ma mes ton ta \
        tes son sa ses notre votre leur ce cet cette ces est suis es sont était être été a ai as ont avait avoir que qui quoi \
        dont où si comme aussi encore déjà très tout tous bien donc alors puis oui bonjour merci y en ne c'est",
    ties: "à au aux dans sur sous pour par avec sans chez vers entre",
    common: "bon bonne faire fait aller plus temps jour nouveau nouvelle",
    dates: "janvier février mars avril mai juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi \
        vendredi samedi dimanche hier demain matin soir dernier prochain",
    courtesies: "merci bonjour salut super oui parfait",
    requests: "s'il vous plaît|s'il te plaît|pouvez-vous|peux-tu|pourriez|j'aimerais|je voudrais|aidez",
    decisions: "décidé|on va |nous allons|je vais|il faut|doit |ne pas|plutôt|au lieu|convenu",
    findings: "trouvé|parce que|la cause|le problème|erreur|il s'avère|à cause",
    states: "terminé|fait |corrigé|échoué|fonctionne|prochaine étape|reste à|en cours",
    ..NONE
};

const SPANISH: Lists = Lists {
    speaker: "yo me mi mis nosotros nuestro nuestra",
    function: "el la los las un una unos unas lo y e o u pero yo tú él ella nosotros ellos me te se nos mi mis tu tus su sus \
        este esta estos estas ese esa eso es soy son era fue ser está estoy están estaba he ha han había que quien cual si \
        como también ya muy más bien pues entonces sí hola gracias del al",
    ties: "a de en para por con sin sobre desde hasta entre",
    common: "bueno buena hacer hecho ir tiempo día nuevo nueva todo",
    dates: "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles \
        jueves viernes sábado domingo ayer hoy mañana tarde noche pasado próximo",
    courtesies: "gracias hola sí claro perfecto buenos buenas",
    requests: "por favor|puedes |podrías|puede usted|ayúdame|quiero |quisiera|necesito",
    decisions: "decidido|decidimos|vamos a|voy a|debe |hay que|en lugar|mejor |acordado",
    findings: "encontr|porque |la causa|el problema|error|resulta que|debido",
    states: "listo|hecho|terminado|arreglado|falló|funciona|siguiente paso|pendiente|en curso",
    ..NONE
};

const PORTUGUESE: Lists = Lists {
    speaker: "eu me meu minha meus nós nosso nossa",
    function: "o a os as um uma uns umas e ou mas eu tu ele ela nós eles me te se meu minha seu sua este esta esse essa isso é \
        sou são era foi ser está estou estão estava tenho tem ter há que quem qual como também já muito mais bem então sim \
        olá obrigado obrigada do da dos das no na nos nas ao à",
    ties: "de em para por com sem sobre até entre",
    common: "bom boa fazer feito ir tempo dia novo nova tudo",
    dates: "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro segunda terça quarta \
        quinta sexta sábado domingo ontem hoje amanhã manhã tarde noite passado próximo",
    courtesies: "obrigado obrigada olá oi sim claro perfeito bom",
    requests: "por favor|você pode|poderia|me ajude|quero |gostaria|preciso",
    decisions: "decidi|vamos |vou |deve |em vez|melhor |combinado",
    findings: "encontr|porque |a causa|o problema|erro|acontece que|devido",
    states: "pronto|feito|concluído|corrigido|falhou|funciona|próximo passo|pendente|em andamento",
    ..NONE
};

const RUSSIAN: Lists = Lists {
    speaker: "я мне меня мой моя моё мои мы нам нас наш",
    function: "и а но или я ты он она оно мы вы они меня мне тебя тебе его ему её ей нас нам вас вам их им мой моя моё мои твой \
        ваш наш свой это этот эта эти тот та те то что чтобы как так же ли бы если когда где кто который которая есть был \
        была было были будет быть ещё уже очень просто тоже также вот ну да здравствуйте привет спасибо пожалуйста",
    ties: "в во на с со к ко по за из от до у о об для при про под над",
    common: "хорошо новый можно нужно время день сделать",
    dates: "января февраля марта апреля мая июня июля августа сентября октября ноября декабря понедельник вторник среда \
        четверг пятница суббота воскресенье вчера сегодня завтра утром вечером",
    courtesies: "спасибо привет здравствуйте да хорошо отлично",
    requests: "пожалуйста|можешь|можете|помоги|мне нужно|хочу |сделай",
    decisions: "решили|решено|будем |нельзя|нужно |должен|вместо|договорились|лучше ",
    findings: "нашёл|нашел|потому что|причина|проблема|ошибка|оказалось|из-за",
    states: "готово|сделано|исправлено|не удалось|работает|следующий шаг|осталось|в процессе",
    ..NONE
};

const JAPANESE: Lists = Lists {
    speaker: "私 僕 俺",
    function: "は が を に へ と も の で や か ね よ な です ます した して する いる ある この その",
    requests: "ください|お願い|教えて|してほしい|したい",
    decisions: "決め|決定|べき|しないで|代わりに|ことにし",
    findings: "見つか|原因|ため|問題は|エラー|分かった|わかった",
    states: "完了|修正し|失敗|成功|次に|残り|済み",
    fillers: "お願いします|お願いいたします|ありがとうございます|すみません|こんにちは|でしょうか|ですか|ますか|ください|ですね|です|ます|ました",
    ..NONE
};

const KOREAN: Lists = Lists {
    speaker: "저 제 제가 저는 나 내 우리",
    function: "그 이 저 것 수 및 그리고 하지만 또는 네 예 안녕하세요 감사합니다 좀 더 잘 제가 저는 나는 내가",
    requests: "주세요|해줘|부탁|알려|하고 싶",
    decisions: "결정|하기로|해야|하지 마|대신",
    findings: "발견|때문|원인|문제는|오류|에러",
    states: "완료|수정했|실패|성공|다음|남은",
    ..NONE
};

const fn lists(language: Language) -> &'static Lists {
    match language {
        Language::Chinese => &CHINESE,
        Language::English => &ENGLISH,
        Language::French => &FRENCH,
        Language::German => &GERMAN,
        Language::Japanese => &JAPANESE,
        Language::Korean => &KOREAN,
        Language::Portuguese => &PORTUGUESE,
        Language::Russian => &RUSSIAN,
        Language::Spanish => &SPANISH,
        Language::Other => &NONE,
    }
}
