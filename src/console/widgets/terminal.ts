/** Terminal, in a chunk of its own: load it with `import()`. */
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { documentWithoutStyles, withStandIns } from './adopted-style.ts';

export interface OpenTerminal {
  readonly terminal: Terminal;
  /** Removes the terminal from the page. */
  close(): void;
}

export interface TerminalOptions {
  readonly readOnly?: boolean;
  /** Called for Ctrl-], which moves the focus out of the terminal: all other keys, also Tab, go into it. */
  readonly onLeave?: () => void;
}

const SCROLLBACK_LINES = 5_000;

/** Opens a terminal that fills `parent` and follows its size. Links in the output are text. */
export function openTerminal(parent: HTMLElement, { readOnly = false, onLeave }: TerminalOptions = {}): OpenTerminal {
  const styles = getComputedStyle(parent);
  const colour = (name: string): string => styles.getPropertyValue(name).trim();
  const terminal = new Terminal({
    documentOverride: documentWithoutStyles(),
    disableStdin: readOnly,
    scrollback: SCROLLBACK_LINES,
    screenReaderMode: true,
    fontSize: 13,
    fontFamily: colour('--mono'),
    // OSC 8: no output of a container may open a page.
    linkHandler: { activate: () => undefined, allowNonHttpProtocols: false },
    theme: {
      background: colour('--back'),
      foreground: colour('--text'),
      cursor: colour('--accent'),
      selectionBackground: colour('--line'),
    },
  });
  // OSC 52 would let the output read and write the clipboard.
  terminal.parser.registerOscHandler(52, () => true);
  terminal.attachCustomKeyEventHandler((event) => {
    if (onLeave === undefined || !event.ctrlKey || event.key !== ']') return true;
    event.preventDefault();
    if (event.type === 'keydown') onLeave();
    return false;
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  // The viewport of xterm 6.0.0 ignores documentOverride.
  withStandIns(() => terminal.open(parent));
  fit.fit();
  const sizes = new ResizeObserver(() => fit.fit());
  sizes.observe(parent);
  return {
    terminal,
    close: () => {
      sizes.disconnect();
      terminal.dispose();
    },
  };
}
