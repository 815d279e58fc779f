/** Uploads of image archives and update bundles to a node, by a button or by dropping files. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { questionOf } from '../../data/api/access.ts';
import { NODES } from '../../data/api/resources.ts';
import { bytesText } from '../../data/format.ts';
import { masterNames, uploadArchive } from '../../data/hosts/administration.ts';
import { sendFile } from '../../session/request.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { currentPlace } from '../../shell/router.ts';
import { showFailure, showToast } from '../../shell/toasts.tsx';
import { api } from '../../ui/context.ts';
import { useFeed } from '../../ui/hooks.ts';
import { Action, Link } from '../../ui/parts.tsx';

export default function UploadImages() {
  useCommand('hyperedge image import FILE');
  return (
    <>
      <p class="muted">
        Archives of docker save, or oci-archive files, plain or compressed. An import can replace the image of a name
        that pods use.
      </p>
      <Upload kind="images" />
    </>
  );
}

export function UploadBundle() {
  useCommand('hyperedge bundle import FILE');
  return (
    <>
      <p class="muted">
        A signed update bundle. The upload does not change any host: the release is offered as an available update, and
        you start it on the page <Link to="/hosts?view=version">Version</Link>.
      </p>
      <Upload kind="bundles" />
    </>
  );
}

interface Imported {
  readonly text: string;
  /** Label of the link to the next step; undefined if there is none. */
  readonly next: string | undefined;
}

interface Sending {
  readonly name: string;
  readonly done: number;
  readonly total: number;
}

function Upload({ kind }: { readonly kind: 'images' | 'bundles' }) {
  const { items } = useFeed(NODES);
  const names = kind === 'bundles' ? masterNames(items) : items.map(({ metadata }) => metadata?.name ?? '').sort();
  const [chosen, setNode] = useState('');
  const node = chosen === '' ? (names[0] ?? '') : chosen;
  const [acceptsOlder, setOlder] = useState(kind === 'bundles' && currentPlace.value.query.get('older') === 'yes');
  const [files, setFiles] = useState<readonly File[]>([]);
  const [sending, setSending] = useState<Sending>();
  const [results, setResults] = useState<readonly Imported[]>([]);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(new Error('the page was closed')), []);
  const send = async (): Promise<void> => {
    const next = kind === 'images' ? undefined : acceptsOlder ? 'Go to the versions' : 'Start the update';
    const stop = new AbortController();
    running.current = stop;
    try {
      for (const file of files) {
        setSending({ name: file.name, done: 0, total: file.size });
        const imported = await uploadArchive(
          api,
          sendFile,
          { node, kind, file, acceptsOlder },
          {
            signal: stop.signal,
            onSent: (done) => setSending({ name: file.name, done: Math.min(done, file.size), total: file.size }),
          },
        );
        setResults((last) => [...last, { text: `${node}: ${imported.join(', ')}`, next }]);
        showToast(`${file.name} is imported.`);
      }
      setFiles([]);
    } catch (error) {
      showFailure(error);
    } finally {
      running.current = undefined;
      setSending(undefined);
    }
  };
  return (
    <form
      class="form"
      onSubmit={(event) => event.preventDefault()}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        setFiles([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <label>
        Node{' '}
        <select name="node" value={node} onChange={({ currentTarget }) => setNode(currentTarget.value)}>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Files of this computer; choose them, or drop them here
        <input
          type="file"
          name="archives"
          multiple={kind === 'images'}
          onChange={({ currentTarget }) => setFiles([...(currentTarget.files ?? [])])}
        />
      </label>
      {kind === 'bundles' ? (
        <label>
          <input
            type="checkbox"
            name="older"
            checked={acceptsOlder}
            onChange={({ currentTarget }) => setOlder(currentTarget.checked)}
          />{' '}
          Accept a release that is older than the version of the cluster, to roll back to it
        </label>
      ) : null}
      {files.length === 0 ? null : <p>{files.map(({ name, size }) => `${name} (${bytesText(size)})`).join(', ')}</p>}
      <Action
        label="Upload"
        question={questionOf('create', NODES, undefined, { name: node, subresource: 'proxy' })}
        {...(files.length === 0 ? { disabled: 'Choose files first.' } : node === '' ? { disabled: 'No node.' } : {})}
        run={send}
      />
      {sending === undefined ? null : (
        <div class="row" role="status">
          <progress
            aria-label="Upload"
            {...(sending.done < sending.total ? { max: Math.max(1, sending.total), value: sending.done } : {})}
          />
          <span>
            {sending.done < sending.total
              ? `${sending.name}: ${bytesText(sending.done)} of ${bytesText(sending.total)}`
              : `${sending.name} is being imported.`}
          </span>
          <button type="button" onClick={() => running.current?.abort(new Error('the upload was cancelled'))}>
            Cancel
          </button>
        </div>
      )}
      <ul aria-label="Imported">
        {results.map(({ text, next }) => (
          <li key={text}>
            {text} {next === undefined ? null : <Link to="/hosts?view=version">{next}</Link>}
          </li>
        ))}
      </ul>
    </form>
  );
}
