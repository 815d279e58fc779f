/** Editor for YAML. It is a separate chunk, so load it with `import()`. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, foldGutter, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';

export interface OpenEditor {
  readonly view: EditorView;
  text(): string;
  /** Replaces the whole text. */
  setText(text: string): void;
  /** Removes the editor from the page. */
  close(): void;
}

const HIGHLIGHTS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--series-1)' },
  { tag: [tags.string, tags.content], color: 'var(--text)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--series-5)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--muted)' },
]);

/** Characters that change the direction of text or are invisible, beyond those that the editor shows by itself. */
const MISLEADING = /[\u200c\u202a-\u202c\u2060-\u2065\u2068]/g;

const THEME = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--back)', border: '1px solid var(--line)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', fontSize: '13px' },
  '.cm-gutters': { backgroundColor: 'var(--raised)', color: 'var(--muted)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--raised) 60%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--line) !important' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
});

/**
 * Opens an editor in a shadow root of `parent`. In a shadow root, CodeMirror uses constructed style sheets, which the
 * content security policy allows. The Tab key indents; Escape followed by Tab leaves the editor.
 */
export function openEditor(
  parent: HTMLElement,
  { text = '', label = 'YAML', readOnly = false, extensions = [] as readonly Extension[] } = {},
): OpenEditor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        ...[lineNumbers(), foldGutter(), history(), drawSelection(), indentOnInput(), bracketMatching()],
        highlightSpecialChars({ addSpecialChars: MISLEADING }),
        ...[highlightActiveLine(), highlightSelectionMatches(), search({ top: true }), yaml(), THEME],
        syntaxHighlighting(HIGHLIGHTS),
        keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, indentWithTab]),
        EditorState.readOnly.of(readOnly),
        EditorView.contentAttributes.of({ 'aria-label': label }),
        ...extensions,
      ],
    }),
  });
  return {
    view,
    text: () => view.state.doc.toString(),
    setText: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    close: () => view.destroy(),
  };
}
