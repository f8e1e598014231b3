// Adds local times and the box that selects all keys of a list, and keeps the live parts of a page up to date. Everything else works without it.
//
// A live part is an element with an id and `data-live`. When the server says that something changed, the page is fetched anew and
// its live parts replace the ones that are shown: the server renders them, here and there, in one way only.
(() => {
  'use strict';

  // Pages are rendered in UTC. The local time is a tooltip everywhere, and stands beside whole moments.
  function addLocalTimes(root) {
    for (const time of root.querySelectorAll('time[datetime]')) {
      const at = new Date(time.dateTime);
      if (isNaN(at) || !at.getTimezoneOffset()) continue;
      const local = at.toLocaleString();
      time.title = local + ' local time';
      if (time.classList.contains('full')) time.append(element('span', 'local', local + ' local'));
    }
  }

  // Only ever as text: what is in a key is a stranger's.
  function element(name, className, text) {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
  }

  // The box works by this script alone, so that nothing is shown without it.
  function showSelectAll(root) {
    for (const box of root.querySelectorAll('[data-select-all]')) box.hidden = false;
  }

  document.addEventListener('change', ({ target }) => {
    if (!target.matches('[data-select-all]')) return;
    for (const box of target.form.querySelectorAll('input[name=id]')) box.checked = target.checked;
  });

  addLocalTimes(document);
  showSelectAll(document);

  // What is marked `data-live-too` is kept up to date on a page that has live parts, and makes no page live by itself.
  const parts = () => document.querySelectorAll('[data-live], [data-live-too]');
  if (!document.querySelector('[data-live]') || !window.EventSource || !window.DOMParser) return;

  const RATES_EVERY_MS = 5000;
  const POLL_EVERY_MS = 10000;
  const FEED_LENGTH = 12;

  const status = document.getElementById('live-status');
  let isFetching = false;
  let isWanted = false;
  let fetchedAt = Date.now();

  function say(text, word) {
    if (!status) return;
    status.hidden = false;
    status.className = 'live-status ' + word;
    status.textContent = text;
  }

  // The element that had the keyboard's focus may be replaced: what stands in its place gets it.
  // A list in which keys are selected stays as it is until they are acted on.
  function replace(shown, fresh) {
    if (shown.innerHTML === fresh.innerHTML || shown.querySelector('input:checked')) return;
    const focused = shown.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
    shown.replaceChildren(...fresh.childNodes);
    if (!focused) return;
    for (const link of shown.querySelectorAll('a[href]')) {
      if (link.getAttribute('href') === focused) { link.focus({ preventScroll: true }); return; }
    }
  }

  async function refresh() {
    if (isFetching || document.hidden) { isWanted = true; return; }
    isFetching = true;
    isWanted = false;
    fetchedAt = Date.now();
    try {
      const answer = await fetch(location.href, { cache: 'no-store', redirect: 'manual', credentials: 'same-origin' });
      if (answer.type === 'opaqueredirect') { say('Logged out: reload to log in', 'broken'); return; }
      if (!answer.ok) { say('The server refused: reload', 'broken'); return; }
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      for (const shown of parts()) {
        const fresh = page.getElementById(shown.id);
        if (!fresh) continue;
        addLocalTimes(fresh);
        showSelectAll(fresh);
        replace(shown, fresh);
      }
    } catch (_) {
      say('No connection; trying again', 'broken');
    } finally {
      isFetching = false;
      if (isWanted && !document.hidden) setTimeout(refresh, 250);
    }
  }

  document.addEventListener('visibilitychange', () => { if (!document.hidden && isWanted) refresh(); });

  const feed = document.getElementById('feed');
  let seen = [];

  // Many decisions a second are shown a few at a time.
  function tell(decision) {
    if (!feed) return;
    if (!seen.length) setTimeout(draw, 300);
    seen.push(decision);
    if (seen.length > FEED_LENGTH) seen = seen.slice(-FEED_LENGTH);
  }

  function draw() {
    document.getElementById('feed-empty').hidden = true;
    for (const decision of seen) {
      const line = document.createElement('li');
      const word = String(decision.decision);
      line.append(element('span', 'word ' + (/^[a-z_]+$/.test(word) ? word : ''), word));
      const link = element('a', 'key', String(decision.name));
      if (/^[0-9a-f]{64}$/.test(decision.id)) link.href = '/keys/' + decision.id;
      const scope = Array.isArray(decision.scope) ? decision.scope.join('/') + ' ' : '';
      line.append(link, element('span', 'of', scope + String(decision.operation)));
      line.append(element('time', 'muted', new Date().toISOString().slice(11, 19)));
      feed.prepend(line);
    }
    seen = [];
    while (feed.children.length > FEED_LENGTH) feed.lastElementChild.remove();
  }

  function listen() {
    const events = new EventSource('/v1/events');
    let polling = 0;
    events.addEventListener('open', () => {
      clearInterval(polling);
      polling = 0;
      say('Live', 'fine');
      const box = document.getElementById('feed-box');
      if (box) box.hidden = false;
    });
    events.addEventListener('census', refresh);
    events.addEventListener('rates', () => { if (Date.now() - fetchedAt >= RATES_EVERY_MS) refresh(); });
    events.addEventListener('decision', (event) => {
      try { tell(JSON.parse(event.data)); } catch (_) { /* Of another release: not shown. */ }
    });
    events.addEventListener('error', () => {
      if (!polling) polling = setInterval(refresh, POLL_EVERY_MS);
      if (events.readyState === EventSource.CLOSED) say('Every 10 s', 'fine');
      else say('Reconnecting', 'broken');
    });
  }

  listen();
})();
