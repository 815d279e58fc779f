import { Component, type ComponentChildren } from 'preact';

/** Whether the code of a view could not be loaded. Matches the messages of Chromium, Firefox and WebKit. */
const isMissingCode = ({ message }: Error): boolean =>
  /dynamically imported module|importing a module script failed/i.test(message);

interface Props {
  readonly children: ComponentChildren;
}

/** Shows an error in place of the view that threw it; the rest of the console stays usable. */
export class ErrorBoundary extends Component<Props, { readonly error?: Error | undefined }> {
  override state: { readonly error?: Error | undefined } = {};

  static override getDerivedStateFromError(error: unknown): { readonly error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render({ children }: Props) {
    const { error } = this.state;
    if (error === undefined) return children;
    if (isMissingCode(error))
      return (
        <section role="alert">
          <h1>This view could not be loaded</h1>
          <p>The API server does not answer, or its console was updated after this tab was opened.</p>
          <button type="button" onClick={() => location.reload()}>
            Load the console again
          </button>
        </section>
      );
    return (
      <section role="alert">
        <h1>This view has failed</h1>
        <pre>{error.message}</pre>
        <button type="button" onClick={() => this.setState({ error: undefined })}>
          Show it again
        </button>
      </section>
    );
  }
}
