/** Terminal. It is a separate chunk, so load it with `import()`. */
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
  /**
   * Called for Ctrl-], which moves the focus out of the terminal. All other keys, including Tab, are sent to the
   * terminal.
   */
  readonly onLeave?: () => void;
}

const SCROLLBACK_LINES = 5_000;

/** Opens a terminal that fills `parent` and adapts to its size. Links in the output are plain text. */
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
    // Links of OSC 8 are disabled, so that the output of a container cannot open a page.
    linkHandler: { activate: () => undefined, allowNonHttpProtocols: false },
    theme: {
      background: colour('--back'),
      foreground: colour('--text'),
      cursor: colour('--accent'),
      selectionBackground: colour('--line'),
    },
  });
  // OSC 52 is disabled, because it would allow the output to read and write the clipboard.
  terminal.parser.registerOscHandler(52, () => true);
  terminal.attachCustomKeyEventHandler((event) => {
    if (onLeave === undefined || !event.ctrlKey || event.key !== ']') return true;
    event.preventDefault();
    if (event.type === 'keydown') onLeave();
    return false;
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  // xterm 6.0.0 ignores documentOverride for its viewport.
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
