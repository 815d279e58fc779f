/** Keyboard shortcuts of the whole console. Views add shortcuts with `useShortcut`. */
import { useEffect } from 'preact/hooks';

type Action = (event: KeyboardEvent) => void;

interface Shortcut {
  /**
   * `event.key`, with the prefix `Ctrl-` if that key is held, such as `Ctrl-k`; or two keys in sequence, such as `g n`.
   */
  readonly keys: string;
  readonly text: string;
  readonly run: Action;
}

const SEQUENCE_MS = 1_000;
const shortcuts = new Set<Shortcut>();
let before: { readonly key: string; readonly atMs: number } | undefined;

/** The shortcuts that are active now, for the help text. */
export const activeShortcuts = (): readonly Shortcut[] => [...shortcuts];

/** Adds a shortcut. Returns a function that removes it. */
export function addShortcut(keys: string, text: string, run: Action): () => void {
  const shortcut = { keys, text, run };
  shortcuts.add(shortcut);
  return () => void shortcuts.delete(shortcut);
}

/** Adds a shortcut while the component is mounted. */
export function useShortcut(keys: string, text: string, run: Action): void {
  useEffect(() => addShortcut(keys, text, run), [keys, text, run]);
}

export function startKeyboard(): void {
  addEventListener('keydown', (event) => {
    if (event.metaKey || event.altKey) return;
    if (takesText(event.target) && !event.ctrlKey) return;
    const key = event.ctrlKey ? `Ctrl-${event.key.toLowerCase()}` : event.key;
    const sequence = before !== undefined && event.timeStamp - before.atMs < SEQUENCE_MS ? `${before.key} ${key}` : '';
    before = { key, atMs: event.timeStamp };
    // If several shortcuts have the same keys, the one that was added last belongs to the innermost view.
    const found = activeShortcuts().findLast(({ keys }) => keys === sequence || keys === key);
    if (found === undefined) return;
    before = undefined;
    event.preventDefault();
    found.run(event);
  });
}

/** Whether the target receives keys as text: a field, an editor or a terminal. */
function takesText(target: EventTarget | null): boolean {
  const [inner] = target instanceof HTMLElement ? [target] : [];
  if (inner === undefined) return false;
  return inner.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(inner.tagName) || inner.shadowRoot !== null;
}
