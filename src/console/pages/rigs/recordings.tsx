/** Recorded output of the consoles of a rig. */
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../../base/errors.ts';
import { type AccessRequest, questionOf } from '../../data/api/access.ts';
import { RIGS } from '../../data/api/resources.ts';
import { bytesText, timeText } from '../../data/format.ts';
import {
  downloadRecording,
  type RecordingList,
  type RecordingView,
  readRecordings,
  recordingText,
} from '../../data/hosts/rig-uses.ts';
import { sanitizeText } from '../../data/plain-text.ts';
import { showToast } from '../../shell/toasts.tsx';
import { api } from '../../ui/context.ts';
import { useAccess } from '../../ui/hooks.ts';
import { Action, Link, pathOf, State } from '../../ui/parts.tsx';

const REFRESH_MS = 10_000;

interface Shown {
  readonly name: string;
  readonly text: string;
  readonly isCut: boolean;
}

export function Recordings({ rig }: { readonly rig: string }) {
  const question = questionOf('get', RIGS, '', { name: rig, subresource: 'recordings' });
  const decision = useAccess(question);
  return (
    <section aria-label="Recordings">
      <h2>Recordings</h2>
      {decision.allowed ? <Files rig={rig} /> : <p class="muted">{decision.reason}</p>}
    </section>
  );
}

function Files({ rig }: { readonly rig: string }) {
  const { list, problem } = useRecordings(rig);
  const [shown, setShown] = useState<Shown>();
  const question = questionOf('get', RIGS, '', { name: rig, subresource: 'recordings' });
  const show = async (recording: RecordingView): Promise<void> => {
    const text = await recordingText(await downloadRecording(api, rig, recording));
    setShown({ name: recording.name, ...text });
  };
  const save = async (recording: RecordingView): Promise<void> => {
    const { name } = recording;
    const blob = await downloadRecording(api, rig, recording);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = `${rig}-${name}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    showToast(`${name} has ${bytesText(blob.size)}.`);
  };
  const files = useRef<HTMLElement>(null);
  const text = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (shown !== undefined) text.current?.focus();
  }, [shown]);
  const close = (): void => {
    setShown(undefined);
    files.current?.focus();
  };
  return (
    <>
      {problem === undefined ? null : <p class="bad">{problem}</p>}
      {list === undefined ? null : (
        <Listed list={list} region={files} question={question} onShow={show} onSave={save} />
      )}
      {list === undefined && problem === undefined ? <p class="muted">The recordings are being read.</p> : null}
      {shown === undefined ? null : (
        <section aria-label={`Recording ${shown.name}`}>
          <div class="row">
            <h3>{shown.name}</h3>
            <button type="button" onClick={close}>
              Close the recording
            </button>
          </div>
          {shown.isCut ? <p class="muted">The end of the recording is shown. The download has all of it.</p> : null}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
          <pre ref={text} class="wrap recording" tabIndex={0}>
            {shown.text === '' ? 'The recording is empty.' : shown.text}
          </pre>
        </section>
      )}
    </>
  );
}

interface ListedProps {
  readonly list: RecordingList;
  readonly region: RefObject<HTMLElement | null>;
  readonly question: AccessRequest;
  readonly onShow: (recording: RecordingView) => Promise<void>;
  readonly onSave: (recording: RecordingView) => Promise<void>;
}

function Listed({ list: { items, failures }, region, question, onShow, onSave }: ListedProps) {
  return (
    <>
      {failures.map(({ node, message }) => (
        <p key={node} class="wrap">
          <State level="warn" text={`The recordings on node ${node} cannot be listed: ${sanitizeText(message)}`} />
        </p>
      ))}
      {items.length === 0 ? <p>No node of the rig that answers has recordings.</p> : null}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
      <section ref={region} class="scroll rows" aria-label="Recordings of the consoles" tabIndex={0}>
        <table>
          <caption class="hidden">Recordings of the consoles, newest first</caption>
          <thead>
            <tr>
              {['Start', 'Node', 'Size', 'State', 'Actions'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {items.map((recording) => {
              const { name, node = '', start, bytes, isOpen } = recording;
              return (
                <tr key={`${node} ${name}`}>
                  <td>{timeText(start)}</td>
                  <td data-column="Node">{node === '' ? '–' : <Link to={pathOf('nodes', node)}>{node}</Link>}</td>
                  <td data-column="Size">{bytesText(bytes)}</td>
                  <td data-column="State">{isOpen ? <State level="good" text="recording" /> : 'closed'}</td>
                  <td data-column="Actions">
                    <div class="row">
                      <Action label={`Show ${name}`} question={question} run={() => onShow(recording)} />
                      <Action label={`Download ${name}`} question={question} run={() => onSave(recording)} />
                    </div>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
    </>
  );
}

function useRecordings(rig: string): {
  readonly list: RecordingList | undefined;
  readonly problem: string | undefined;
} {
  const [list, setList] = useState<RecordingList>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    const ended = new AbortController();
    const once = async (): Promise<void> => {
      if (document.visibilityState === 'hidden') return;
      try {
        const next = await readRecordings(api, rig, ended.signal);
        if (ended.signal.aborted) return;
        setList(next);
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
  return { list, problem };
}
