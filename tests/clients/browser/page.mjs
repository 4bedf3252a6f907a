// The web page in a real browser: every page opened as a person does, in light
// and in dark, with a picture of each. Whatever the browser complains of, and
// whatever it would load from elsewhere, is a failure.

import puppeteer from "puppeteer-core";

const { BASE, SESSION, REVIEW, GUARDED, TOKEN, SHOTS, CHROMIUM } = process.env;
const ok = (what) => console.log(`ok ${what}`);
const assert = (holds, what) => {
  if (!holds) throw new Error(what);
};

const browser = await puppeteer.launch({
  executablePath: CHROMIUM,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP proxy.example 127.0.0.1",
  ],
});

const complaints = [];
// A wrong token is answered with 401, which a browser mentions.
const expected = (text) => /status of 40[13]/.test(text);

async function visitor(scheme) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width: 1240, height: 860 });
  await page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: scheme },
    { name: "prefers-reduced-motion", value: "reduce" },
  ]);
  await page.evaluateOnNewDocument(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  page.on("console", (message) => {
    const bad = ["error", "warn", "warning"].includes(message.type());
    if (bad && !expected(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const url = new URL(request.url());
    const own = [new URL(BASE).host, new URL(GUARDED).host, ""];
    if (!own.includes(url.host)) complaints.push(`asks ${url.host}`);
  });
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText;
    if (why !== "net::ERR_ABORTED") complaints.push(`${request.url()}: ${why}`);
  });
  return page;
}

const text = (page) => page.$eval("main", (main) => main.innerText);
const shot = (page, name, fullPage = false) =>
  page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage });
async function follow(page, act) {
  await Promise.all([page.waitForNavigation(), act()]);
}

async function tour(scheme) {
  const page = await visitor(scheme);
  await page.goto(BASE);
  assert((await page.$$("tbody tr")).length >= 3, "sessions are listed");
  await shot(page, `${scheme}-1-sessions`);
  ok(`${scheme}: sessions`);

  await page.goto(`${BASE}page/${SESSION}`);
  assert((await page.$$(".chart .pass")).length >= 3, "passes are marked");
  assert((await page.$$(".chart .breaker")).length >= 1, "the breaker is marked");
  const title = await page.$eval(".chart .pass title", (title) => title.textContent);
  assert(/messages: [\d,]+ to [\d,]+ tokens/.test(title), title);
  await shot(page, `${scheme}-2-session`, true);
  ok(`${scheme}: one session`);

  await follow(page, () => page.click(".tabs a:nth-child(2)"));
  const stands = await page.$$(".row.stands");
  assert(stands.length >= 1, "summaries stand in the view");
  await page.click(".row.stands details summary");
  await shot(page, `${scheme}-3-view`, true);
  ok(`${scheme}: the view beside the original`);

  await page.goto(`${BASE}page/${REVIEW}/view`);
  assert((await page.$$(".now .chip.clear")).length >= 1, "stubs stand in the view");
  await shot(page, `${scheme}-3-stubs`, true);
  const removed = await page.$(".now a[href*='/ref/lh-']");
  assert(removed, "something that was removed can be opened");
  const href = await removed.evaluate((link) => link.getAttribute("href"));
  await page.goto(new URL(href, BASE).href);
  assert((await text(page)).includes("[longhaul: lh-"), "it is shown");
  await shot(page, `${scheme}-4-removed`);
  ok(`${scheme}: what was removed`);

  await page.goto(`${BASE}page/${SESSION}/search`);
  await page.type("#search", "part_2.rs");
  await follow(page, () => page.keyboard.press("Enter"));
  assert((await page.$$(".hits li")).length >= 1, "something is found");
  await shot(page, `${scheme}-5-search`);
  ok(`${scheme}: search`);
  await page.browserContext().close();
}

async function keyboard() {
  const page = await visitor("light");
  await page.goto(BASE);
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  await shot(page, "light-6-keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  assert((await page.$$("tr.chosen")).length === 1, "a row is chosen");
  await follow(page, () => page.keyboard.press("Enter"));
  assert(page.url().includes("/longhaul/page/"), page.url());
  await follow(page, () => page.keyboard.press("/"));
  assert(page.url().endsWith("/search"), page.url());
  await page.keyboard.press("/");
  assert(await page.$("#search:focus"), "the field has the focus");
  await page.keyboard.press("Escape");
  await follow(page, () => page.keyboard.press("u"));
  assert(page.url() === BASE, page.url());
  const [again] = await Promise.all([
    page.waitForResponse((answer) => answer.url() === BASE),
    page.keyboard.press("r"),
  ]);
  assert(again.ok(), "refreshed");
  ok("keys");
  await page.browserContext().close();
}

async function narrow() {
  const page = await visitor("light");
  await page.setViewport({ width: 420, height: 800 });
  for (const path of ["", `page/${SESSION}`, `page/${SESSION}/view`]) {
    await page.goto(BASE + path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(wide <= 420, `${path} is ${wide} wide`);
  }
  await shot(page, "light-7-narrow");
  ok("a narrow window");
  await page.browserContext().close();
}

async function withoutScript() {
  const page = await visitor("dark");
  await page.setJavaScriptEnabled(false);
  await page.goto(`${BASE}page/${SESSION}`);
  assert(await page.$(".chart"), "the chart is there");
  await page.click(".order summary");
  await page.type("#instructions", "keep the names of all files");
  await shot(page, "dark-6-compact");
  await follow(page, () => page.click(".order button"));
  assert(page.url() === `${BASE}page/${SESSION}`, page.url());
  assert((await page.content()).includes("A pass is asked for"), "the wish is noted");
  await shot(page, "dark-7-asked");
  ok("compact now, without a script");
  await page.browserContext().close();
}

async function signIn() {
  const page = await visitor("light");
  await page.goto(GUARDED);
  assert(await page.$("#token"), "the form is there");
  await page.type("#token", "wrong");
  await follow(page, () => page.keyboard.press("Enter"));
  assert((await text(page)).includes("not the token"), "a wrong token is told");
  await shot(page, "light-8-sign-in");
  await page.type("#token", TOKEN);
  await follow(page, () => page.keyboard.press("Enter"));
  assert((await page.$$("tbody tr")).length >= 1, "signed in");
  const cookies = await page.cookies();
  assert(cookies.length === 1 && cookies[0].httpOnly, JSON.stringify(cookies));
  assert((await page.evaluate(() => document.cookie)) === "", "no script sees it");
  await follow(page, () => page.click("tbody a.name"));
  await follow(page, () => page.click(".top form button"));
  assert(await page.$("#token"), "signed out");
  ok("sign in and out");
  await page.browserContext().close();
}

try {
  await tour("light");
  await tour("dark");
  await keyboard();
  await narrow();
  await withoutScript();
  await signIn();
  assert(complaints.length === 0, complaints.join("\n"));
  ok("nothing to complain of");
} finally {
  await browser.close();
}
