//! One tab, and what a person does in it.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::wire::Wire;
use crate::token::Token;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// How often something is looked for: a minute or more.
const LOOKS_MAX: u32 = 6_000;
/// The most of a page that is in a picture, in pixels from its top.
const PICTURE_HEIGHT_MAX: f64 = 4_000.0;

/// One tab, in a window of its own: a tab behind another one is hidden, and may rest.
pub struct Page {
    wire: Arc<Wire>,
    tab: String,
    target: String,
}

impl Page {
    pub(super) fn open(wire: &Arc<Wire>, screen: Screen) -> Result<Self> {
        let made =
            wire.call(None, "Target.createTarget", &json!({ "url": "about:blank", "newWindow": true }))?;
        let target = word(&made, "targetId")?;
        let attached =
            wire.call(None, "Target.attachToTarget", &json!({ "targetId": target, "flatten": true }))?;
        let page = Self { wire: Arc::clone(wire), tab: word(&attached, "sessionId")?, target };
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            page.call(domain, &json!({}))?;
        }
        page.show_on(screen)?;
        Ok(page)
    }

    /// Any command of the developer tools' protocol.
    pub fn call(&self, method: &str, params: &Value) -> Result<Value> {
        self.wire.call(Some(&self.tab), method, params)
    }

    /// Shows it on another screen.
    pub fn show_on(&self, screen: Screen) -> Result<()> {
        let metrics = json!({
            "width": screen.width, "height": screen.height,
            "deviceScaleFactor": if screen.is_mobile() { 2 } else { 1 }, "mobile": screen.is_mobile(),
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics)?;
        let features = json!([{ "name": "prefers-color-scheme", "value": screen.scheme() }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features })).map(drop)
    }

    /// Runs this before anything else in every page that is opened from now on.
    pub fn before_each(&self, script: &str) -> Result<()> {
        self.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script })).map(drop)
    }

    /// Opens an address, and waits until it has loaded.
    pub fn go(&self, url: &str) -> Result<()> {
        let went = self.call("Page.navigate", &json!({ "url": url }))?;
        if let Some(error) = went.get("errorText").and_then(Value::as_str) {
            bail!("{url}: {error}");
        }
        self.until("the page to load", "document.readyState === 'complete'").map(drop)
    }

    /// What an expression is in this page. Promises are waited for.
    pub fn eval(&self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true });
        let mut told = self.call("Runtime.evaluate", &asked)?;
        if let Some(thrown) = told.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(told.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }

    /// Waits until an expression is true, and says what it is then. A page that is left meanwhile is waited for.
    pub fn until(&self, what: &str, expression: &str) -> Result<Value> {
        let mut last = String::new();
        for _ in 0..LOOKS_MAX {
            match self.eval(expression) {
                Ok(found) if !is_false(&found) => return Ok(found),
                Ok(found) => last = found.to_string(),
                Err(error) => last = format!("{error:#}"),
            }
            sleep(BETWEEN_LOOKS);
        }
        bail!("waited for {what}, and it is {last}; the page says: {}", self.text().unwrap_or_default())
    }

    /// All the text that can be seen.
    pub fn text(&self) -> Result<String> {
        Ok(self.eval("document.body ? document.body.innerText : ''")?.as_str().unwrap_or_default().to_owned())
    }

    /// Where it is.
    pub fn url(&self) -> Result<String> {
        Ok(self.eval("location.href")?.as_str().unwrap_or_default().to_owned())
    }

    /// How many elements there are of this selector.
    pub fn count(&self, selector: &str) -> Result<u64> {
        let found = self.eval(&format!("document.querySelectorAll({}).length", quoted(selector)))?;
        found.as_u64().context("a count is a number")
    }

    /// Presses the mouse on the first element of this selector, where a person would.
    pub fn click(&self, selector: &str) -> Result<()> {
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({}); if (!e) return null; e.scrollIntoView({{block: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2, r.width * r.height]; }})()",
            quoted(selector)
        ))?;
        let at = |index: usize| place.get(index).and_then(Value::as_f64);
        let (Some(x), Some(y), Some(area)) = (at(0), at(1), at(2)) else {
            bail!("there is no {selector} in {}: {}", self.url()?, self.text()?)
        };
        ensure!(area > 0.0, "{selector} cannot be seen");
        for kind in ["mousePressed", "mouseReleased"] {
            let press = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &press)?;
        }
        Ok(())
    }

    /// Types into the first element of this selector.
    pub fn fill(&self, selector: &str, text: &str) -> Result<()> {
        let script = format!(
            "(() => {{ const e = document.querySelector({}); if (!e) return false; e.focus(); e.select && e.select(); return true; }})()",
            quoted(selector)
        );
        ensure!(self.eval(&script)? == Value::Bool(true), "there is no {selector}: {}", self.text()?);
        self.call("Input.insertText", &json!({ "text": text })).map(drop)
    }

    /// Presses the Enter key.
    pub fn enter(&self) -> Result<()> {
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r" });
            self.call("Input.dispatchKeyEvent", &key)?;
        }
        Ok(())
    }

    /// Logs in on the login page.
    pub fn log_in(&self, token: &Token) -> Result<()> {
        self.fill("[data-test=login-token]", &token.text)?;
        self.enter()?;
        let is_in = "location.pathname !== '/login' && document.readyState === 'complete'";
        self.until("the page after the login", is_in).map(drop)
    }

    /// What the browser complained about since it was last asked: errors of scripts, what a policy refused, dialogs.
    pub fn complaints(&self) -> Vec<String> {
        let complaint = |event: &super::wire::Event| match event.method.as_str() {
            "Page.javascriptDialogOpening" | "Runtime.exceptionThrown" => true,
            "Log.entryAdded" => event.params.pointer("/entry/level").is_some_and(|level| level == "error"),
            "Runtime.consoleAPICalled" => event.params.get("type").is_some_and(|kind| kind == "error"),
            _ => false,
        };
        let events = self.wire.take_events(&self.tab);
        events
            .iter()
            .filter(|event| complaint(event))
            .map(|event| format!("{}: {}", event.method, event.params))
            .collect()
    }

    /// A picture of the whole page, as PNG.
    pub fn picture(&self) -> Result<Vec<u8>> {
        let metrics = self.call("Page.getLayoutMetrics", &json!({}))?;
        let size = |name: &str| metrics.pointer(&format!("/cssContentSize/{name}")).and_then(Value::as_f64);
        let (Some(width), Some(height)) = (size("width"), size("height")) else {
            bail!("the page has no size")
        };
        let clip =
            json!({ "x": 0, "y": 0, "width": width, "height": height.min(PICTURE_HEIGHT_MAX), "scale": 1 });
        let asked = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let made = self.call("Page.captureScreenshot", &asked)?;
        STANDARD.decode(word(&made, "data")?).context("a picture is base64")
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // The browser may be gone already.
        let _closed = self.wire.call(None, "Target.closeTarget", &json!({ "targetId": self.target }));
    }
}

/// Text as JavaScript reads it.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn is_false(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || value == 0 || value == ""
}

fn word(value: &Value, name: &str) -> Result<String> {
    let word = value.get(name).and_then(Value::as_str);
    word.map(str::to_owned).with_context(|| format!("the browser did not say {name}"))
}

/// What somebody looks at a page on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// For file names.
    pub name: &'static str,
    /// In CSS pixels.
    pub width: u32,
    /// In CSS pixels.
    pub height: u32,
    /// Whether the person prefers dark pages.
    pub is_dark: bool,
}

impl Screen {
    /// A desktop.
    pub const DESKTOP: Self = Self { name: "desktop-light", width: 1_280, height: 900, is_dark: false };
    /// A phone.
    pub const PHONE: Self = Self { name: "phone-light", width: 390, height: 844, is_dark: false };
    /// All that pictures are made on.
    pub const ALL: [Self; 4] = [
        Self::DESKTOP,
        Self { name: "desktop-dark", is_dark: true, ..Self::DESKTOP },
        Self::PHONE,
        Self { name: "phone-dark", is_dark: true, ..Self::PHONE },
    ];

    /// Whether it is a phone's.
    pub(super) fn is_mobile(self) -> bool {
        self.width < 600
    }

    /// The word of CSS for how it is coloured.
    pub(super) fn scheme(self) -> &'static str {
        if self.is_dark { "dark" } else { "light" }
    }
}
