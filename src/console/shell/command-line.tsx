/** Line at the bottom with the command that is equivalent to the view. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { showFailure, showToast } from './toasts.tsx';

const command = signal('');

/** Shows a command, such as `kubectl get nodes`, while the component is mounted. */
export function useCommand(text: string): void {
  useEffect(() => {
    command.value = text;
    return () => {
      if (command.value === text) command.value = '';
    };
  }, [text]);
}

export function CommandLine() {
  const text = command.value;
  if (text === '') return null;
  const copy = (): void =>
    void navigator.clipboard.writeText(text).then(() => showToast('The command was copied.'), showFailure);
  return (
    <footer class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
      <code tabIndex={0}>{text}</code>
      <button type="button" class="plain" onClick={copy}>
        Copy<span class="hidden"> the command</span>
      </button>
    </footer>
  );
}
