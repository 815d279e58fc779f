/** Frame of the console: header, navigation, the view, and overlays. */
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { PAGES } from '../pages/index.ts';
import {
  CONTINUE_PATH,
  linkRefused,
  loginAddress,
  logout,
  sessionState,
  toLoginPage,
  userName,
} from '../session/login.ts';
import { CommandLine } from './command-line.tsx';
import { ErrorBoundary } from './error-boundary.tsx';
import { activeShortcuts } from './keyboard.ts';
import { GROUPS, type Page, type PageProps } from './page.ts';
import { openPalette, Palette } from './palette.tsx';
import { currentPlace, findPage, hrefOf } from './router.ts';
import { switchTheme, theme } from './theme.ts';
import { showFailure, Toasts } from './toasts.tsx';

const navigationOpen = signal(false);
export const helpOpen = signal(false);

export function Shell() {
  switch (sessionState.value) {
    case 'starting':
      return <main class="alone" aria-busy="true" />;
    case 'in':
    case 'expired':
      return currentPlace.value.path === CONTINUE_PATH ? <Continue /> : <Frame />;
    case 'failed':
      return (
        <Alone title="The API server does not answer">
          <p>Check the connection to {location.host}.</p>
          <button type="button" onClick={() => location.reload()}>
            Try again
          </button>
        </Alone>
      );
    case 'out':
      return (
        <Alone title={linkRefused.value ? 'This link cannot be used' : 'Logged out'}>
          {linkRefused.value ? (
            <p>
              The link was used already, is older than 60 seconds, or is of another API server. Run{' '}
              <code>hyperedge console</code> again, or log in.
            </p>
          ) : null}
          <button type="button" onClick={toLoginPage}>
            Log in
          </button>
        </Alone>
      );
  }
}

function Alone({ title, children }: { readonly title: string; readonly children: preact.ComponentChildren }) {
  return (
    <main class="alone">
      <h1>{title}</h1>
      {children}
    </main>
  );
}

/** End of a login that another tab waits for. */
const Continue = () => (
  <Alone title="Logged in">
    <p>The tab that you came from continues. You can close this one.</p>
    <a href={hrefOf('/')}>Open the overview here</a>
  </Alone>
);

/** Shown above the view, which stays as it is, when the session has ended by itself. */
const Expired = () => (
  <p class="expired" role="alert">
    <strong>Your session has ended.</strong> Your input is kept.{' '}
    <a href={loginAddress(hrefOf(CONTINUE_PATH))} target="_blank" rel="noreferrer">
      Log in again in a new tab
    </a>
    , then continue here.
  </p>
);

function Frame() {
  const { path } = currentPlace.value;
  useEffect(() => {
    navigationOpen.value = false;
  }, [path]);
  return (
    <div class="frame">
      <a class="skip" href="#view">
        Skip to the content
      </a>
      <Header />
      <Navigation path={path} />
      <main id="view" tabIndex={-1}>
        {sessionState.value === 'expired' ? <Expired /> : null}
        <View path={path} />
      </main>
      <CommandLine />
      <Palette />
      {helpOpen.value ? <Help /> : null}
      <Toasts />
    </div>
  );
}

function Header() {
  const end = (): void => void logout().catch(showFailure);
  return (
    <header class="top">
      <button
        type="button"
        class="plain menu"
        aria-expanded={navigationOpen.value}
        aria-controls="navigation"
        onClick={() => {
          navigationOpen.value = !navigationOpen.value;
        }}
      >
        ☰<span class="hidden"> Navigation</span>
      </button>
      <a class="brand" href={hrefOf('/')}>
        hyperedge
      </a>
      <button type="button" class="find" onClick={openPalette}>
        Find <kbd>/</kbd>
      </button>
      <button
        type="button"
        class="plain"
        onClick={switchTheme}
        aria-label={theme.value === 'dark' ? 'Light colours' : 'Dark colours'}
      >
        {theme.value === 'dark' ? '☀' : '☾'}
      </button>
      <span class="user">{userName.value}</span>
      <button type="button" class="plain" onClick={end}>
        Log out
      </button>
    </header>
  );
}

function Navigation({ path }: { readonly path: string }) {
  const found = findPage(PAGES, path);
  const parent = found?.page.parent?.(found.params).path;
  // The first segment of the parent's path is the page of the navigation to which the object belongs.
  const parentPath = parent === undefined ? undefined : /^\/[^/?]*/.exec(parent)?.[0];
  return (
    <nav id="navigation" class={navigationOpen.value ? 'open' : ''} aria-label="Pages">
      {GROUPS.map((group) => {
        const pages = PAGES.filter((page) => page.group === group);
        if (pages.length === 0) return null;
        return (
          <section key={group}>
            <h2>{group}</h2>
            <ul>
              {pages.map((page) => (
                <li key={page.path}>
                  <a
                    href={hrefOf(linkOf(page))}
                    aria-current={page === found?.page ? 'page' : linkOf(page) === parentPath ? 'true' : undefined}
                  >
                    {page.title}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}

/** The path without its optional segments. */
export const linkOf = ({ path }: Page): string => path.replace(/\/(?::\w+\?|\*)/g, '') || '/';

function View({ path }: { readonly path: string }) {
  const found = findPage(PAGES, path);
  const object = found?.params['name'] ?? found?.params['plural'] ?? '';
  useEffect(() => {
    document.title = `${object === '' ? '' : `${object} · `}${found?.page.title ?? 'Not found'} · hyperedge`;
  }, [found?.page, object]);
  if (found === undefined)
    return (
      <>
        <h1>Not found</h1>
        <p>
          The console has no page <code>{path}</code>. <a href={hrefOf('/')}>Go to the overview.</a>
        </p>
      </>
    );
  const parent = found.page.parent?.(found.params);
  return (
    <ErrorBoundary key={found.page.path}>
      {parent === undefined ? null : (
        <p class="parent">
          <a href={hrefOf(parent.path)}>
            <span aria-hidden="true">‹ </span>
            {parent.title}
          </a>
        </p>
      )}
      <Loaded page={found.page} params={found.params} />
    </ErrorBoundary>
  );
}

function Loaded({ page, params }: { readonly page: Page; readonly params: PageProps['params'] }) {
  const [content, setContent] = useState<{ readonly Content: ComponentType<PageProps> }>();
  const [error, setError] = useState<unknown>();
  const focused = useRef<Page>(undefined);
  useEffect(() => {
    let current = true;
    page.load().then(
      (module) => {
        if (current) setContent({ Content: module.default });
      },
      (reason: unknown) => {
        if (current) setError(reason);
      },
    );
    return () => {
      current = false;
    };
  }, [page]);
  useEffect(() => {
    if (content === undefined || focused.current === page) return;
    // The first view after the start does not take the focus from the document.
    if (document.activeElement !== document.body) document.getElementById('view')?.focus({ preventScroll: true });
    focused.current = page;
  }, [content, page]);
  if (error !== undefined) throw error;
  if (content === undefined) return <h1>{page.title}</h1>;
  const { Content } = content;
  return <Content params={params} query={currentPlace.value.query} />;
}

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-label="Keyboard"
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      <h2>Keyboard</h2>
      <dl class="keys">
        {activeShortcuts().map(({ keys, text }) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
