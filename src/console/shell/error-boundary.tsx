import { Component, type ComponentChildren } from 'preact';

interface Props {
  readonly children: ComponentChildren;
}

/** Shows an error of a view in its place; the rest of the console stays usable. */
export class ErrorBoundary extends Component<Props, { readonly error?: Error }> {
  override state: { readonly error?: Error } = {};

  static override getDerivedStateFromError(error: unknown): { readonly error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render({ children }: Props) {
    const { error } = this.state;
    if (error === undefined) return children;
    return (
      <section role="alert">
        <h1>This view has failed</h1>
        <pre>{error.message}</pre>
        <button type="button" onClick={() => this.setState({})}>
          Show it again
        </button>
      </section>
    );
  }
}
