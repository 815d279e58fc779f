/** Recorded output of the consoles of a rig. */
import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../../../base/errors.ts';
import { questionOf } from '../../data/api/access.ts';
import { RIGS } from '../../data/api/resources.ts';
import { bytesText } from '../../data/format.ts';
import { downloadRecording, type RecordingView, readRecordings, recordingText } from '../../data/hosts/rig-uses.ts';
import { showToast } from '../../shell/toasts.tsx';
import { api } from '../../ui/context.ts';
import { useAccess } from '../../ui/hooks.ts';
import { Action, State } from '../../ui/parts.tsx';

const REFRESH_MS = 10_000;

interface Shown {
  readonly name: string;
  readonly text: string;
  readonly isCut: boolean;
}

export function Recordings({ rig }: { readonly rig: string }) {
  const question = questionOf('get', RIGS, '', { name: rig, subresource: 'recordings' });
  const verdict = useAccess(question);
  return (
    <section aria-label="Recordings">
      <h2>Recordings</h2>
      {verdict.allowed ? <Files rig={rig} /> : <p class="muted">{verdict.reason}</p>}
    </section>
  );
}

function Files({ rig }: { readonly rig: string }) {
  const { recordings, problem } = useRecordings(rig);
  const [shown, setShown] = useState<Shown>();
  const question = questionOf('get', RIGS, '', { name: rig, subresource: 'recordings' });
  const show = async (name: string): Promise<void> => {
    setShown({ name, ...(await recordingText(await downloadRecording(api, rig, name))) });
  };
  const save = async (name: string): Promise<void> => {
    const blob = await downloadRecording(api, rig, name);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = `${rig}-${name}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    showToast(`${name} has ${bytesText(blob.size)}.`);
  };
  if (problem !== undefined) return <p class="bad">{problem}</p>;
  if (recordings === undefined) return <p class="muted">The recordings are being read.</p>;
  if (recordings.length === 0) return <p>The node of the rig has no recordings.</p>;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
      <section class="scroll" aria-label="Recordings of the consoles" tabIndex={0}>
        <table>
          <caption class="hidden">Recordings of the consoles, newest first</caption>
          <thead>
            <tr>
              {['Start', 'Size', 'State', 'Actions'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {recordings.map(({ name, start, bytes, isOpen }) => (
              <tr key={name}>
                <td title={name}>{start}</td>
                <td>{bytesText(bytes)}</td>
                <td>{isOpen ? <State level="good" text="recording" /> : 'closed'}</td>
                <td>
                  <div class="row">
                    <Action label={`Show ${name}`} question={question} run={() => show(name)} />
                    <Action label={`Download ${name}`} question={question} run={() => save(name)} />
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {shown === undefined ? null : (
        <section aria-label={`Recording ${shown.name}`}>
          <div class="row">
            <h3>{shown.name}</h3>
            <button type="button" onClick={() => setShown(undefined)}>
              Close the recording
            </button>
          </div>
          {shown.isCut ? <p class="muted">The end of the recording is shown. The download has all of it.</p> : null}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
          <pre class="wrap recording" tabIndex={0}>
            {shown.text === '' ? 'The recording is empty.' : shown.text}
          </pre>
        </section>
      )}
    </>
  );
}

function useRecordings(rig: string): {
  readonly recordings: readonly RecordingView[] | undefined;
  readonly problem: string | undefined;
} {
  const [recordings, setRecordings] = useState<readonly RecordingView[]>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    const ended = new AbortController();
    const once = async (): Promise<void> => {
      if (document.visibilityState === 'hidden') return;
      try {
        const next = await readRecordings(api, rig, ended.signal);
        if (ended.signal.aborted) return;
        setRecordings(next);
        setProblem(undefined);
      } catch (error) {
        if (!ended.signal.aborted) setProblem(`The recordings cannot be read: ${messageOf(error)}`);
      }
    };
    void once();
    const id = setInterval(() => void once(), REFRESH_MS);
    return () => {
      ended.abort();
      clearInterval(id);
    };
  }, [rig]);
  return { recordings, problem };
}
