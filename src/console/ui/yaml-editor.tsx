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

type YamlModule = typeof import('../data/manifests/yaml.ts');

interface Outcome {
  readonly errors: readonly PlacedProblem[];
  readonly conflicts: readonly { readonly manager: string; readonly field: string }[];
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

const NOTHING: Outcome = { errors: [], conflicts: [], diff: [], isUnchanged: false };

export function YamlEditor({ text, onApplied }: { readonly text: string; readonly onApplied?: () => void }) {
  const parent = useRef<HTMLDivElement>(null);
  const editor = useRef<OpenEditor>(undefined);
  const yaml = useRef<YamlModule>(undefined);
  const mark = useRef<(problems: readonly PlacedProblem[]) => void>(undefined);
  const [outcome, setOutcome] = useState<Outcome>(NOTHING);
  const [help, setHelp] = useState<FieldHelp>();
  const [isReady, setReady] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    let isShown = true;
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
      const opened = widget.openEditor(parent.current, { text, extensions });
      editor.current = opened;
      mark.current = (problems) => completion.showProblems(opened.view, problems);
      setReady(true);
    }, showFailure);
    return () => {
      isShown = false;
      clearTimeout(pause);
      editor.current?.close();
    };
  }, [text]);
  const run = async (dryRun: boolean, force: boolean): Promise<void> => {
    if (yaml.current === undefined || editor.current === undefined) return;
    setBusy(true);
    try {
      const text = editor.current.text();
      // All manifests are checked by a dry run before the first one is changed.
      const checked = await applyText(yaml.current, text, true, force);
      const hasFailed = checked.errors.length > 0 || checked.conflicts.length > 0;
      const next = dryRun || hasFailed ? checked : await applyText(yaml.current, text, false, force);
      setOutcome(next);
      mark.current?.(next.errors);
      if (dryRun || next.errors.length > 0 || next.conflicts.length > 0) return;
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

async function applyText(yaml: YamlModule, text: string, dryRun: boolean, force: boolean): Promise<Outcome> {
  const { manifests, places, problems } = yaml.parseManifests(text);
  if (problems.length > 0) return { ...NOTHING, errors: problems };
  const kinds = await servedKinds(api);
  const errors: PlacedProblem[] = [];
  const diff: DiffLine[] = [];
  const conflicts: { manager: string; field: string }[] = [];
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
    else if (dryRun)
      diff.push(
        ...hunks(
          diffLines(before === undefined ? '' : yaml.yamlOf(before), yaml.yamlOf(withoutServerFields(result.object))),
        ),
      );
  }
  return { errors, conflicts, diff, isUnchanged: dryRun && errors.length + conflicts.length + diff.length === 0 };
}

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
  const { errors, conflicts, diff, isUnchanged } = outcome;
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
      {isUnchanged ? <p>Nothing would change.</p> : null}
      {diff.length === 0 ? null : (
        <pre>
          {diff.map(({ kind, text }, index) => (
            <div key={index} class={kind === '+' ? 'added' : kind === '-' ? 'removed' : ''}>
              {kind} {text}
            </div>
          ))}
        </pre>
      )}
    </div>
  );
}
