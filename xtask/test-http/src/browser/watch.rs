//! What must not happen in a page: a script of somebody else's that runs, or tries to.

use anyhow::Result;
use serde_json::Value;

use super::page::Page;

/// Strings of attackers call `semelCanary()` or `alert()`; a policy that stops them says so. All of it is noted.
const WATCH: &str = "
    window.semelTrips = [];
    const trip = what => () => { window.semelTrips.push(what); };
    window.semelCanary = trip('the canary was called');
    for (const dialog of ['alert', 'confirm', 'prompt', 'print']) window[dialog] = trip(dialog + ' was called');
    document.addEventListener('securitypolicyviolation', event => {
        window.semelTrips.push('the policy stopped ' + event.violatedDirective + ' ' + event.sample);
    });
";
/// What was noted, and what stands in the page that would run if somebody touched it.
const FOUND: &str = "
    (() => {
        const trips = [...(window.semelTrips ?? ['nobody watches'])];
        for (const element of document.querySelectorAll('*')) {
            for (const { name, value } of element.attributes) {
                if (/^on/i.test(name)) trips.push(`${element.localName} has ${name}`);
                if (/^(href|src|action|formaction|xlink:href|data)$/i.test(name) && /^\\s*(javascript|data|vbscript):/i.test(value))
                    trips.push(`${element.localName} leads to ${value.slice(0, 40)}`);
                if (name === 'style') trips.push(`${element.localName} has a style of its own`);
            }
            if (element.localName === 'script' && !element.src) trips.push('a script stands in the page');
            if (['iframe', 'object', 'embed', 'base'].includes(element.localName)) trips.push(`there is an ${element.localName}`);
        }
        return trips;
    })()
";
/// How many elements there are of each name; charts have as many parts as there are numbers.
const SHAPE: &str = "
    (() => {
        const counts = {};
        for (const element of document.querySelectorAll('*:not(svg *)'))
            counts[element.localName] = (counts[element.localName] ?? 0) + 1;
        return counts;
    })()
";

impl Page {
    /// Watches over every page that is opened from now on.
    pub fn watch(&self) -> Result<()> {
        self.before_each(WATCH)
    }

    /// What happened or stands in this page that must not. Empty, if all is well.
    pub fn trips(&self) -> Result<Vec<String>> {
        let found = self.eval(FOUND)?;
        let found = found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Ok(found.chain(self.complaints()).collect())
    }

    /// What the page is made of: how many elements of each name.
    pub fn shape(&self) -> Result<Value> {
        self.eval(SHAPE)
    }
}
