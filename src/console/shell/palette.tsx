/** Command palette: finds pages, actions and the entries of registered sources, such as objects. */
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { addShortcut } from './keyboard.ts';
import { navigate } from './router.ts';

export interface PaletteEntry {
  readonly label: string;
  /** Text beside the label, such as the kind of an object. */
  readonly hint?: string;
  /** Path below `/console`, or a function to call. */
  readonly target: string | (() => void);
}

/** Returns the entries for a text, best match first. */
export type PaletteSource = (text: string) => readonly PaletteEntry[] | Promise<readonly PaletteEntry[]>;

const MAX_SHOWN = 30;
const sources = new Set<PaletteSource>();
const open = signal(false);

/** Adds a source. Returns a function that removes it. */
export function addPaletteSource(source: PaletteSource): () => void {
  sources.add(source);
  return () => void sources.delete(source);
}

export const openPalette = (): void => {
  open.value = true;
};

export function startPalette(): void {
  addShortcut('/', 'find an object, a page or an action', openPalette);
  addShortcut('Ctrl-k', 'find an object, a page or an action', openPalette);
}

export const Palette = () => (open.value ? <OpenPalette /> : null);

function OpenPalette() {
  const [text, setText] = useState('');
  const [entries, setEntries] = useState<readonly PaletteEntry[]>([]);
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  useEffect(() => {
    let current = true;
    const found: (readonly PaletteEntry[])[] = [];
    const show = (): void => {
      if (current) setEntries(found.flat().slice(0, MAX_SHOWN));
    };
    setChosen(0);
    // Entries of slow sources are added when they arrive.
    for (const [index, source] of [...sources].entries())
      void Promise.resolve(source(text))
        .catch(() => [])
        .then((each) => {
          found[index] = each;
          show();
        });
    return () => {
      current = false;
    };
  }, [text]);
  const close = (): void => {
    open.value = false;
  };
  const run = ({ target }: PaletteEntry): void => {
    close();
    if (typeof target === 'string') navigate(target);
    else target();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const entry = entries[chosen];
    if (step !== 0 && entries.length > 0) setChosen((chosen + step + entries.length) % entries.length);
    else if (event.key === 'Enter' && entry !== undefined) run(entry);
    else return;
    event.preventDefault();
  };
  return (
    <dialog class="palette" ref={dialog} onClose={close} aria-label="Find">
      <input
        type="text"
        role="combobox"
        aria-label="Find an object, a page or an action"
        aria-expanded="true"
        aria-controls="palette-entries"
        aria-activedescendant={entries.length > 0 ? `palette-${chosen}` : undefined}
        placeholder="Find an object, a page or an action"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div id="palette-entries" role="listbox" aria-label="Found" class="palette-entries">
        {entries.map((entry, index) => (
          <div
            key={`${entry.hint ?? ''} ${entry.label}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            onClick={() => run(entry)}
            onKeyDown={onKeyDown}
          >
            <span>{entry.label}</span>
            <span class="muted">{entry.hint}</span>
          </div>
        ))}
      </div>
      {entries.length === 0 ? <p class="muted">Nothing matches.</p> : null}
    </dialog>
  );
}
