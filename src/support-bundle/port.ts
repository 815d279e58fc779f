/** Parts of a support bundle. */

/** `log`: lines, which may contain JSON. `env`: `NAME=value`. `document`: YAML or JSON, redacted by its fields. */
export type TextFormat = 'log' | 'env' | 'document';

/** A file of the bundle that is being written; text that does not fit is dropped. */
export interface EntryWriter {
  write(text: string): Promise<void>;
}

export interface EntryOptions {
  readonly format?: TextFormat;
  /** Keeps the end instead of the beginning if the text is too long. */
  readonly keepEnd?: boolean;
  readonly maxBytes?: number;
  /** The text begins in the middle of a file, for example inside of a private key. */
  readonly beginsInMiddle?: boolean;
}

/** Takes the files of a section. All content is redacted before it is stored. */
export interface SectionSink {
  /** Writes a text in pieces. */
  stream(path: string, content: AsyncIterable<string> | Iterable<string>, options?: EntryOptions): Promise<void>;
  /** Writes an object as YAML, redacted by its fields. */
  object(path: string, value: unknown): Promise<void>;
  /** Records that a part of the section is missing, and continues. */
  missing(what: string, reason: string): void;
}

export interface Section {
  readonly id: string;
  readonly title: string;
  readonly timeoutMs: number;
  /** Limit of the section's files together. */
  readonly maxBytes: number;
  collect(sink: SectionSink, signal: AbortSignal): Promise<void>;
}

export interface EntryReport {
  /** Relative to the directory of the bundle. */
  readonly path: string;
  readonly bytes: number;
  /** Description of the missing part; undefined if the file is complete. */
  readonly cut: string | undefined;
}

export interface SectionReport {
  readonly id: string;
  readonly title: string;
  readonly tookMs: number;
  readonly entries: readonly EntryReport[];
  /** Reasons why parts are missing. */
  readonly problems: readonly string[];
}

export interface BundleReport {
  readonly host: string;
  readonly version: string;
  readonly time: string;
  readonly since: string;
  /** Values that were removed because they are known to be secret. */
  readonly knownSecrets: number;
  readonly sections: readonly SectionReport[];
}
