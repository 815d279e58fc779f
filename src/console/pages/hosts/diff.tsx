/** Selection of two texts, with their differences. */
import { useState } from 'preact/hooks';
import { diffLines, hunks } from '../../data/manifests/diff.ts';

export interface DiffSide {
  readonly name: string;
  readonly text: string;
}

/** Compares two texts, at first the newest and the one before it. `sides` is sorted newest first. */
export function DiffOf({ sides, same }: { readonly sides: readonly DiffSide[]; readonly same: string }) {
  const [from, setFrom] = useState<string>();
  const [to, setTo] = useState<string>();
  const before = sides.find(({ name }) => name === from) ?? sides[1] ?? sides[0];
  const after = sides.find(({ name }) => name === to) ?? sides[0];
  if (before === undefined || after === undefined) return null;
  const lines = hunks(diffLines(before.text, after.text));
  const choice = (label: string, value: string, onChange: (name: string) => void) => (
    <label>
      {label}{' '}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {sides.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <div class="row">
        {choice('Compare', before.name, setFrom)}
        {choice('with', after.name, setTo)}
      </div>
      {lines.length === 0 ? <p>{same}</p> : <DiffText lines={lines} />}
    </>
  );
}

const DiffText = ({ lines }: { readonly lines: ReturnType<typeof hunks> }) => (
  <pre class="wrap">
    {lines.map(({ kind, text }, index) => (
      <div key={index} class={kind === '+' ? 'added' : kind === '-' ? 'removed' : ''}>
        {kind} {text}
      </div>
    ))}
  </pre>
);
