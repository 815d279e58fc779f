/** Editor for manifests: dry run with differences, apply, conflicts, and errors with their lines. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { KubeObject } from '../../api/meta/object.ts';
import { objectPath } from '../../client/resource-path.ts';
import { applyManifest, type PlacedProblem, placedProblems, withoutServerFields } from '../data/api/apply.ts';
import { kindOf, type ServedKind, servedKinds } from '../data/api/discovery.ts';
import { type DiffLine, diffLines, hunks } from '../data/manifests/diff.ts';
import { type FieldHelp, SchemaHelp } from '../data/manifests/schema-help.ts';
import { type YamlPosition, yamlPosition } from '../data/manifests/yaml-path.ts';
import { showFailure, showToast } from '../shell/toasts.tsx';
import type { OpenEditor } from '../widgets/editor.ts';
import { api } from './context.ts';
import { addEditor, draftOf, dropDraft, keepDraft } from './drafts.ts';

type YamlModule = typeof import('../data/manifests/yaml.ts');

interface Outcome {
  readonly errors: readonly PlacedProblem[];
  readonly conflicts: readonly { readonly manager: string; readonly field: string }[];
  /** Changes of the object since the editor was opened. */
  readonly changed: readonly DiffLine[];
  readonly diff: readonly DiffLine[];
  readonly isUnchanged: boolean;
}

const CURSOR_PAUSE_MS = 250;
const schemas = new SchemaHelp(api);

const positioned = (
  text: string,
  offset: number,
  read: (position: YamlPosition) => Promise<FieldHelp | undefined>,
): Promise<FieldHelp | undefined> => {
  const position = yamlPosition(text, offset);
  return position === undefined ? Promise.resolve(undefined) : read(position);
};

const EDITOR_HELP = {
  around: (text: string, offset: number) => positioned(text, offset, (position) => schemas.around(position)),
  field: (text: string, offset: number) => positioned(text, offset, (position) => schemas.field(position)),
  isInValue: (text: string, offset: number) => yamlPosition(text, offset)?.isInValue === true,
};

const NOTHING: Outcome = { errors: [], conflicts: [], changed: [], diff: [], isUnchanged: false };

export interface YamlEditorProps {
  readonly text: string;
  /** Address of the view. Text that was not applied is kept under it. */
  readonly draftKey: string;
  /** The object as it was when `text` was written; undefined for new objects. */
  readonly base?: KubeObject;
  readonly onApplied?: () => void;
}

/** Shows the kept text of this view, if there is one. */
function Draft({ onDiscard }: { readonly onDiscard: () => void }) {
  return (
    <p class="row" role="status">
      <span>These are your changes from before. They are not applied yet.</span>
      <button type="button" onClick={onDiscard}>
        Discard my changes
      </button>
    </p>
  );
}

export function YamlEditor({ text, draftKey, base, onApplied }: YamlEditorProps) {
  const parent = useRef<HTMLDivElement>(null);
  const editor = useRef<OpenEditor>(undefined);
  const yaml = useRef<YamlModule>(undefined);
  const mark = useRef<(problems: readonly PlacedProblem[]) => void>(undefined);
  const [outcome, setOutcome] = useState<Outcome>(NOTHING);
  const [help, setHelp] = useState<FieldHelp>();
  const [isReady, setReady] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [hasDraft, setHasDraft] = useState(false);
  /** Text that the server has: the initial text, or the last one that was applied. */
  const saved = useRef(text);
  /** The object on which the text in the editor is based. */
  const origin = useRef(base);
  useEffect(() => {
    let isShown = true;
    saved.current = text;
    origin.current = base;
    const hasChanges = (): boolean => editor.current !== undefined && editor.current.text() !== saved.current;
    const removeEditor = addEditor(hasChanges);
    let pause: ReturnType<typeof setTimeout> | undefined;
    const around = { current: 0 };
    const onCursor = (current: string, offset: number): void => {
      clearTimeout(pause);
      const own = ++around.current;
      pause = setTimeout(() => {
        const position = yamlPosition(current, offset);
        if (position === undefined) return;
        void schemas.field(position).then((found) => {
          if (isShown && own === around.current) setHelp(found);
        });
      }, CURSOR_PAUSE_MS);
    };
    void Promise.all([
      import('../widgets/editor.ts'),
      import('../widgets/schema-completion.ts'),
      import('../data/manifests/yaml.ts'),
    ]).then(([widget, completion, module]) => {
      if (!isShown || parent.current === null) return;
      yaml.current = module;
      const extensions = completion.schemaExtensions({ ...EDITOR_HELP, onCursor });
      const draft = draftOf(draftKey);
      const opened = widget.openEditor(parent.current, { text: draft?.text ?? text, extensions });
      editor.current = opened;
      setHasDraft(draft !== undefined);
      if (draft !== undefined) origin.current = draft.base;
      mark.current = (problems) => completion.showProblems(opened.view, problems);
      setReady(true);
    }, showFailure);
    return () => {
      isShown = false;
      clearTimeout(pause);
      removeEditor();
      if (editor.current === undefined) return;
      if (hasChanges()) keepDraft(draftKey, { text: editor.current.text(), base: origin.current });
      else dropDraft(draftKey);
      editor.current.close();
      editor.current = undefined;
    };
  }, [text, draftKey]);
  const discard = (): void => {
    dropDraft(draftKey);
    editor.current?.setText(text);
    origin.current = base;
    setHasDraft(false);
    setOutcome(NOTHING);
  };
  const run = async (dryRun: boolean, force: boolean): Promise<void> => {
    if (yaml.current === undefined || editor.current === undefined) return;
    setBusy(true);
    try {
      const current = editor.current.text();
      // All manifests are checked by a dry run before the first one is changed.
      const options = { force, base: origin.current };
      const checked = await applyText(yaml.current, current, { ...options, dryRun: true });
      const next =
        dryRun || hasProblems(checked) ? checked : await applyText(yaml.current, current, { ...options, dryRun });
      setOutcome(next);
      mark.current?.(next.errors);
      if (dryRun || hasProblems(next)) return;
      saved.current = current;
      origin.current = undefined;
      setHasDraft(false);
      showToast('The objects are applied.');
      onApplied?.();
    } catch (error) {
      showFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div>
      <div class="row">
        <button type="button" aria-disabled={!isReady || isBusy} onClick={() => void run(true, false)}>
          Check
        </button>
        <button type="button" class="main" aria-disabled={!isReady || isBusy} onClick={() => void run(false, false)}>
          Apply
        </button>
      </div>
      {hasDraft ? <Draft onDiscard={discard} /> : null}
      <Result outcome={outcome} onForce={() => void run(false, true)} />
      <div ref={parent} class="editor" />
      <p class="muted" aria-live="polite">
        {help === undefined
          ? 'Ctrl-Space lists the fields; the description of the field at the cursor is shown here. Tab indents; Escape, then Tab, leaves the editor.'
          : `${help.path} (${help.type}): ${help.description}`}
      </p>
    </div>
  );
}

const hasProblems = ({ errors, conflicts, changed }: Outcome): boolean =>
  errors.length > 0 || conflicts.length > 0 || changed.length > 0;

interface ApplyTextOptions {
  readonly dryRun: boolean;
  /** Whether changes and fields of others are overwritten. */
  readonly force: boolean;
  readonly base: KubeObject | undefined;
}

async function applyText(yaml: YamlModule, text: string, options: ApplyTextOptions): Promise<Outcome> {
  const { dryRun, force, base } = options;
  const { manifests, places, problems } = yaml.parseManifests(text);
  if (problems.length > 0) return { ...NOTHING, errors: problems };
  const kinds = await servedKinds(api);
  const errors: PlacedProblem[] = [];
  const diff: DiffLine[] = [];
  const conflicts: { manager: string; field: string }[] = [];
  const changed: DiffLine[] = [];
  const differences = (from: KubeObject | undefined, to: KubeObject): readonly DiffLine[] =>
    hunks(diffLines(from === undefined ? '' : yaml.yamlOf(from), yaml.yamlOf(to)));
  for (const [index, manifest] of manifests.entries()) {
    const { text: own = '', line = 1 } = places[index] ?? {};
    const type = kindOf(kinds, manifest.apiVersion ?? '', manifest.kind ?? '');
    const label = `${manifest.kind} ${manifest.metadata?.name}`;
    if (type === undefined) {
      errors.push({ line, message: `${label}: the server does not serve ${manifest.apiVersion}.` });
      continue;
    }
    if (type.namespaced && manifest.metadata?.namespace === undefined) {
      errors.push({ line, message: `${label}: metadata.namespace is missing.` });
      continue;
    }
    const before = dryRun ? await currentOf(type, manifest) : undefined;
    const result = await applyManifest(api, type, manifest, { dryRun, force });
    if (result.outcome === 'conflict') conflicts.push(...result.conflicts);
    else if (result.outcome === 'invalid') errors.push(...placedProblems(result, own, line));
    else if (dryRun) diff.push(...differences(before, withoutServerFields(result.object)));
    // The server reports no conflict for changes of other users of the console, because they have the same manager.
    if (result.outcome === 'applied' && before !== undefined && base !== undefined && !force && isSame(base, manifest))
      changed.push(...differences(withoutServerFields(base), before));
  }
  const isUnchanged = dryRun && errors.length + conflicts.length + changed.length + diff.length === 0;
  return { errors, conflicts, changed, diff, isUnchanged };
}

const isSame = (one: KubeObject, other: KubeObject): boolean =>
  one.metadata?.name === other.metadata?.name && one.metadata?.namespace === other.metadata?.namespace;

async function currentOf(type: ServedKind, { metadata }: KubeObject): Promise<KubeObject | undefined> {
  try {
    const path = objectPath(type, metadata?.name ?? '', metadata?.namespace);
    return withoutServerFields(await api.json<KubeObject>(path));
  } catch {
    // A new object has no former state to compare with.
    return undefined;
  }
}

function Result({ outcome, onForce }: { readonly outcome: Outcome; readonly onForce: () => void }) {
  const { errors, conflicts, changed, diff, isUnchanged } = outcome;
  return (
    <div aria-live="polite">
      {errors.length === 0 ? null : (
        <ul class="bad">
          {errors.map(({ line, message }) => (
            <li key={message}>
              {line === undefined ? '' : `Line ${line}: `}
              {message}
            </li>
          ))}
        </ul>
      )}
      {conflicts.length === 0 ? null : (
        <div class="card">
          <p>Other managers own these fields:</p>
          <ul>
            {conflicts.map(({ manager, field }) => (
              <li key={manager + field}>
                {field} ({manager})
              </li>
            ))}
          </ul>
          <button type="button" onClick={onForce}>
            Apply and take the fields over
          </button>
        </div>
      )}
      {changed.length === 0 ? null : (
        <div class="card">
          <p>The object has changed since you opened it. These changes of others would be overwritten:</p>
          <Difference lines={changed} />
          <button type="button" onClick={onForce}>
            Apply anyway
          </button>
        </div>
      )}
      {isUnchanged ? <p>Nothing would change.</p> : null}
      {diff.length === 0 ? null : <Difference lines={diff} />}
    </div>
  );
}

const Difference = ({ lines }: { readonly lines: readonly DiffLine[] }) => (
  <pre>
    {lines.map(({ kind, text }, index) => (
      <div key={index} class={kind === '+' ? 'added' : kind === '-' ? 'removed' : ''}>
        {kind} {text}
      </div>
    ))}
  </pre>
);
