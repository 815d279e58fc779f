/** Types and ports of a support bundle. */

/**
 * Format of a text, which determines its redaction. `log`: lines that may contain JSON. `env`: lines `NAME=value`.
 * `document`: YAML or JSON, redacted by the names of fields.
 */
export type TextFormat = 'log' | 'env' | 'document';

/** Writer for a file of the bundle. Text beyond the size limit is dropped. */
export interface EntryWriter {
  write(text: string): Promise<void>;
}

export interface EntryOptions {
  readonly format?: TextFormat;
  /** Whether the end of the text is kept instead of its beginning if the text is too long. */
  readonly keepEnd?: boolean;
  readonly maxBytes?: number;
  /** Whether the text begins in the middle of a file, possibly within a private key. */
  readonly beginsInMiddle?: boolean;
}

/** Receives the files of a section. All content is redacted before it is written. */
export interface SectionSink {
  /** Writes a file from pieces of text. */
  stream(path: string, content: AsyncIterable<string> | Iterable<string>, options?: EntryOptions): Promise<void>;
  /** Writes an object as a YAML file, redacted by the names of its fields. */
  object(path: string, value: unknown): Promise<void>;
  /** Records that a part of the section is missing. The section continues. */
  missing(what: string, reason: string): void;
}

export interface Section {
  readonly id: string;
  readonly title: string;
  readonly timeoutMs: number;
  /** Maximum size of all files of the section together. */
  readonly maxBytes: number;
  collect(sink: SectionSink, signal: AbortSignal): Promise<void>;
}

export interface EntryReport {
  /** Path relative to the directory of the bundle. */
  readonly path: string;
  readonly bytes: number;
  /** Describes the part that is missing; undefined if the file is complete. */
  readonly cut: string | undefined;
}

export interface SectionReport {
  readonly id: string;
  readonly title: string;
  readonly tookMs: number;
  readonly entries: readonly EntryReport[];
  /** Reasons why parts of the section are missing. */
  readonly problems: readonly string[];
}

export interface BundleReport {
  readonly host: string;
  readonly version: string;
  readonly time: string;
  readonly since: string;
  /** Number of texts that are removed wherever they appear: the known secret values in all encodings. */
  readonly knownSecrets: number;
  readonly sections: readonly SectionReport[];
}
