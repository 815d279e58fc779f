/**
 * Web console: the browser's part. It is bundled by `build/console.ts` and served by `src/apiserver/console`.
 *
 * | folder | content |
 * |---|---|
 * | `session` | login; `request`, `requestJson` and `openSocket` send the user's token |
 * | `shell` | frame, navigation, router, command palette, keyboard, toasts, theme |
 * | `data` | lists and watches of the API, as signals |
 * | `pages` | a folder per page; `pages/index.ts` lists them |
 * | `widgets` | terminal and editor, each in a chunk of its own |
 *
 * A page is `pages/NAME/index.tsx` with `{ path, title, group, load }` (`shell/page.ts`) and the code that `load`
 * imports, which is a chunk of its own. It begins with a heading `<h1>`. A page uses:
 *
 * - `requestJson(path)` for one request; it throws `ApiFailure` with the API server's message
 * - `navigate(path)`, `hrefOf(path)`, `setQuery(name, value)`; links are ordinary `<a href={hrefOf(…)}>`
 * - `useCommand(text)` to show the equivalent command at the bottom
 * - `useShortcut(keys, text, run)`, `addPaletteSource(source)` for the keyboard
 * - `showToast(text)`, `showFailure(error)` for the outcome of an action
 * - `theme` for colours of plots; styles are classes and variables of `style.css`
 *
 * The content security policy forbids inline scripts, inline styles and `<style>` elements. The attribute `style` of
 * JSX is allowed, because it is set by a property.
 */
import { effect } from '@preact/signals';
import { render } from 'preact';
import { ObjectSearch, pageOf } from './data/api/search.ts';
import { PAGES } from './pages/index.ts';
import { sessionState, startSession, userName } from './session/login.ts';
import { requestJson } from './session/request.ts';
import { addShortcut, startKeyboard } from './shell/keyboard.ts';
import { objectSource } from './shell/object-source.ts';
import { addPaletteSource, type PaletteEntry, startPalette } from './shell/palette.tsx';
import { currentPlace, navigate, startRouter } from './shell/router.ts';
import { helpOpen, linkOf, Shell } from './shell/shell.tsx';
import { startTheme, switchTheme } from './shell/theme.ts';
import { showFailure } from './shell/toasts.tsx';
import './style.css';
import { api, clock } from './ui/context.ts';

/** Navigation pages and shell actions whose label contains the text. */
function ownEntries(text: string): readonly PaletteEntry[] {
  const pages = PAGES.filter(({ group }) => group !== undefined).map((page) => ({
    label: page.title,
    hint: page.group ?? '',
    target: linkOf(page),
  }));
  const actions = [{ label: 'Switch colours', hint: 'action', target: switchTheme }];
  const wanted = text.toLowerCase();
  return [...pages, ...actions].filter(({ label }) => label.toLowerCase().includes(wanted));
}

async function readUserName(): Promise<void> {
  const review = await requestJson<{ readonly status?: { readonly userInfo?: { readonly username?: string } } }>(
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
    },
  );
  userName.value = review.status?.userInfo?.username ?? '';
}

async function start(): Promise<void> {
  startTheme();
  startRouter();
  startKeyboard();
  startPalette();
  addPaletteSource(ownEntries);
  const search = new ObjectSearch(api, clock, () => currentPlace.value.query.get('ns') ?? '');
  addPaletteSource(objectSource((text, signal) => search.find(text, signal), pageOf));
  addShortcut('g o', 'go to the overview', () => navigate('/'));
  addShortcut('?', 'show the keyboard shortcuts', () => {
    helpOpen.value = true;
  });
  const root = document.getElementById('root');
  if (root !== null) render(<Shell />, root);
  await startSession();
  // After a session that has expired, another user may have logged in.
  effect(() => {
    if (sessionState.value === 'in') readUserName().catch(showFailure);
  });
}

void start();
