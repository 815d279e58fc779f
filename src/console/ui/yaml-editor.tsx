/** Editor for manifests: check by dry run with differences, apply, conflicts and errors with their line. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { KubeObject } from '../../api/meta/object.ts';
import { objectPath } from '../../client/resource-path.ts';
import { type ApplyResult, applyManifest, lineOfField, withoutServerFields } from '../data/apply.ts';
import { type DiffLine, diffLines, hunks } from '../data/diff.ts';
import { kindOf, type ServedKind, servedKinds } from '../data/discovery.ts';

import { showFailure, showToast } from '../shell/toasts.tsx';
import type { OpenEditor } from '../widgets/editor.ts';
import { api } from './context.ts';

type YamlModule = typeof import('../data/yaml.ts');

interface Outcome {
  readonly errors: readonly { readonly line: number | undefined; readonly message: string }[];
  readonly conflicts: readonly { readonly manager: string; readonly field: string }[];
  readonly diff: readonly DiffLine[];
  readonly isUnchanged: boolean;
}

const NOTHING: Outcome = { errors: [], conflicts: [], diff: [], isUnchanged: false };

export function YamlEditor({ text, onApplied }: { readonly text: string; readonly onApplied?: () => void }) {
  const parent = useRef<HTMLDivElement>(null);
  const editor = useRef<OpenEditor>(undefined);
  const yaml = useRef<YamlModule>(undefined);
  const [outcome, setOutcome] = useState<Outcome>(NOTHING);
  const [isReady, setReady] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    let isShown = true;
    void Promise.all([import('../widgets/editor.ts'), import('../data/yaml.ts')]).then(([widget, module]) => {
      if (!isShown || parent.current === null) return;
      yaml.current = module;
      editor.current = widget.openEditor(parent.current, { text });
      setReady(true);
    }, showFailure);
    return () => {
      isShown = false;
      editor.current?.close();
    };
  }, [text]);
  const run = async (dryRun: boolean, force: boolean): Promise<void> => {
    if (yaml.current === undefined || editor.current === undefined) return;
    setBusy(true);
    try {
      const next = await applyText(yaml.current, editor.current.text(), dryRun, force);
      setOutcome(next);
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
    </div>
  );
}

async function applyText(yaml: YamlModule, text: string, dryRun: boolean, force: boolean): Promise<Outcome> {
  const { manifests, problems } = yaml.parseManifests(text);
  if (problems.length > 0) return { ...NOTHING, errors: problems };
  const kinds = await servedKinds(api);
  const errors: { line: number | undefined; message: string }[] = [];
  const diff: DiffLine[] = [];
  const conflicts: { manager: string; field: string }[] = [];
  for (const manifest of manifests) {
    const type = kindOf(kinds, manifest.apiVersion ?? '', manifest.kind ?? '');
    const label = `${manifest.kind} ${manifest.metadata?.name}`;
    if (type === undefined) {
      errors.push({ line: undefined, message: `${label}: the server does not serve ${manifest.apiVersion}.` });
      continue;
    }
    if (type.namespaced && manifest.metadata?.namespace === undefined) {
      errors.push({ line: undefined, message: `${label}: metadata.namespace is missing.` });
      continue;
    }
    // Everything is checked before anything is changed.
    const before = dryRun ? await currentOf(type, manifest) : undefined;
    const result = await applyManifest(api, type, manifest, { dryRun, force });
    collect(result, text, manifests.length === 1, errors, conflicts);
    if (dryRun && result.outcome === 'applied')
      diff.push(
        ...hunks(
          diffLines(before === undefined ? '' : yaml.yamlOf(before), yaml.yamlOf(withoutServerFields(result.object))),
        ),
      );
  }
  return { errors, conflicts, diff, isUnchanged: dryRun && errors.length + conflicts.length + diff.length === 0 };
}

function collect(
  result: ApplyResult,
  text: string,
  isSingle: boolean,
  errors: { line: number | undefined; message: string }[],
  conflicts: { manager: string; field: string }[],
): void {
  if (result.outcome === 'conflict') conflicts.push(...result.conflicts);
  if (result.outcome !== 'invalid') return;
  if (result.causes.length === 0) errors.push({ line: undefined, message: result.message });
  for (const { field = '', message = '' } of result.causes)
    errors.push({ line: isSingle ? lineOfField(text, field) : undefined, message: `${field}: ${message}` });
}

async function currentOf(type: ServedKind, { metadata }: KubeObject): Promise<KubeObject | undefined> {
  try {
    const path = objectPath(type, metadata?.name ?? '', metadata?.namespace);
    return withoutServerFields(await api.json<KubeObject>(path));
  } catch {
    // A new object has no former state.
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
