/** Transfers files to and from a container. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { countText } from '../../../base/text/count-text.ts';
import { questionOf } from '../../data/api/access.ts';
import { PODS } from '../../data/api/resources.ts';
import { bytesText } from '../../data/format.ts';
import { kubectl } from '../../data/kubectl.ts';
import { containerNames } from '../../data/pods/debug.ts';
import { EXEC_PROTOCOLS, execPath, runCommand } from '../../data/pods/exec.ts';
import { download, MAX_TRANSFER_BYTES, type Progress, type RunCommand, upload } from '../../data/pods/transfer.ts';
import { openSocket } from '../../session/request.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { showToast } from '../../shell/toasts.tsx';
import { Action } from '../../ui/parts.tsx';
import { ContainerChoice } from './terminal.tsx';

export default function Files({ pod }: { readonly pod: Pod }) {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const containers = containerNames(pod);
  const [container, setContainer] = useState(containers[0] ?? '');
  const [path, setPath] = useState('');
  const [directory, setDirectory] = useState('/tmp');
  const [files, setFiles] = useState<readonly File[]>([]);
  const [progress, setProgress] = useState<Progress>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(new Error('the page was closed')), []);
  useCommand(kubectl('cp', '-c', container, `${namespace}/${name}:${path || '/PATH'}`, './'));
  const question = questionOf('create', PODS, namespace, { name, subresource: 'exec' });
  const run: RunCommand = (command, streams) =>
    runCommand(
      openSocket(
        execPath({ namespace, pod: name, container, command, tty: false, stdin: streams.input !== undefined }),
        EXEC_PROTOCOLS,
      ),
      streams,
    );
  const transfer = async (work: (signal: AbortSignal) => Promise<string>): Promise<void> => {
    const stop = new AbortController();
    running.current = stop;
    setProgress({ done: 0, total: undefined });
    try {
      showToast(await work(stop.signal));
    } finally {
      running.current = undefined;
      setProgress(undefined);
    }
  };
  const read = (): Promise<void> =>
    transfer(async (signal) => {
      const { blob, name: local, skipped } = await download(run, path, { signal, onProgress: setProgress });
      const link = document.createElement('a');
      link.href = URL.createObjectURL(blob);
      link.download = local;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      return `${local} has ${bytesText(blob.size)}.${skipped === 0 ? '' : ` ${countText(skipped, 'link')} left out.`}`;
    });
  const write = (): Promise<void> =>
    transfer(async (signal) => {
      await upload(run, files, directory, { signal, onProgress: setProgress });
      return `${countText(files.length, 'file')} written to ${directory}.`;
    });
  return (
    <>
      <p class="muted">The container needs the program tar. A transfer has at most {bytesText(MAX_TRANSFER_BYTES)}.</p>
      <ContainerChoice containers={containers} value={container} onChange={setContainer} />
      <form class="form" onSubmit={(event) => event.preventDefault()}>
        <label>
          File or directory in the container
          <input
            name="path"
            placeholder="/var/log/app.log"
            value={path}
            onInput={({ currentTarget }) => setPath(currentTarget.value)}
          />
        </label>
        <Action isDefault label="Download" question={question} run={read} />
      </form>
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
          Files of this computer; choose them, or drop them here
          <input
            type="file"
            name="files"
            multiple
            onChange={({ currentTarget }) => setFiles([...(currentTarget.files ?? [])])}
          />
        </label>
        <label>
          Directory in the container
          <input
            name="directory"
            value={directory}
            onInput={({ currentTarget }) => setDirectory(currentTarget.value)}
          />
        </label>
        <Action
          label="Upload"
          question={question}
          {...(files.length === 0 ? { disabled: 'Choose files first.' } : {})}
          run={write}
        />
      </form>
      {progress === undefined ? null : (
        <div class="row" role="status">
          <progress
            aria-label="Transfer"
            {...(progress.total === undefined ? {} : { max: Math.max(1, progress.total), value: progress.done })}
          />
          <span>
            {bytesText(progress.done)}
            {progress.total === undefined ? '' : ` of ${bytesText(progress.total)}`}
          </span>
          <button type="button" onClick={() => running.current?.abort(new Error('the transfer was cancelled'))}>
            Cancel
          </button>
        </div>
      )}
    </>
  );
}
