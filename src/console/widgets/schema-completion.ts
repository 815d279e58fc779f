/**
 * Completion, hover texts and problems of the YAML editor. Part of the editor's chunk. Texts of the server are shown as
 * plain text.
 */
import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
} from '@codemirror/autocomplete';
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import type { Extension } from '@codemirror/state';
import { type EditorView, hoverTooltip, keymap, EditorView as View } from '@codemirror/view';
import type { FieldHelp } from '../data/manifests/schema-help.ts';

export interface EditorHelp {
  /** Help for the object that contains an offset. Its fields are the candidates for a key. */
  around(text: string, offset: number): Promise<FieldHelp | undefined>;
  /** Help for the field at an offset. */
  field(text: string, offset: number): Promise<FieldHelp | undefined>;
  isInValue(text: string, offset: number): boolean;
  /** Called when the cursor has moved. */
  onCursor(text: string, offset: number): void;
}

const HOVER_WIDTH = '40rem';

export function schemaExtensions(help: EditorHelp): readonly Extension[] {
  const complete = async (context: CompletionContext): Promise<CompletionResult | null> => {
    const word = context.matchBefore(/[\w.-]*/);
    if (word === null || (word.from === word.to && !context.explicit)) return null;
    const text = context.state.doc.toString();
    if (help.isInValue(text, context.pos)) {
      const { values = [] } = (await help.field(text, context.pos)) ?? {};
      return { from: word.from, options: values.map((label) => ({ label, type: 'enum' })) };
    }
    const { fields = [] } = (await help.around(text, context.pos)) ?? {};
    return {
      from: word.from,
      validFor: /^[\w.-]*$/,
      options: fields.map(({ name, type, description, isRequired }) => ({
        label: name,
        apply: `${name}:${/^(?:object|list|map)/.test(type) ? '' : ' '}`,
        detail: isRequired ? `${type}, required` : type,
        info: description,
        boost: isRequired ? 1 : 0,
      })),
    };
  };
  const hover = hoverTooltip(async (view, offset) => {
    const found = await help.field(view.state.doc.toString(), offset);
    if (found === undefined) return null;
    return {
      pos: offset,
      create: () => {
        const dom = document.createElement('div');
        dom.style.maxWidth = HOVER_WIDTH;
        dom.style.padding = '0.4rem';
        dom.textContent = `${found.path} (${found.type}). ${found.description}`;
        return { dom };
      },
    };
  });
  return [
    autocompletion({ override: [complete] }),
    hover,
    lintGutter(),
    keymap.of([...completionKeymap]),
    View.updateListener.of(({ selectionSet, docChanged, state }) => {
      if (selectionSet || docChanged) help.onCursor(state.doc.toString(), state.selection.main.head);
    }),
  ];
}

export interface LineProblem {
  readonly line: number | undefined;
  readonly message: string;
}

/** Marks the lines with problems. Problems without a line are not shown. */
export function showProblems(view: EditorView, problems: readonly LineProblem[]): void {
  const { doc } = view.state;
  const diagnostics = problems.flatMap(({ line, message }): Diagnostic[] => {
    if (line === undefined || line < 1 || line > doc.lines) return [];
    const { from, to } = doc.line(line);
    return [{ from, to, severity: 'error', message }];
  });
  view.dispatch(setDiagnostics(view.state, diagnostics));
}
