/**
 * `metav1.Status` and API errors, with the table of reasons and HTTP codes. Source:
 * k8s.io/apimachinery/pkg/apis/meta/v1 StatusReason documentation.
 */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: Record<string, never>;
  status: 'Success' | 'Failure';
  message?: string;
  reason?: StatusReason;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: StatusCause[];
    retryAfterSeconds?: number;
  };
  code?: number;
}

const HTTP_CODE = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  BadGateway: 502,
  ServiceUnavailable: 503,
  Timeout: 504,
  ServerTimeout: 500,
  /** Code for errors for which upstream has no reason. The response then contains no reason. */
  Unknown: 500,
} as const;

export type StatusReason = keyof typeof HTTP_CODE;

/** An error that is sent to API clients as a `Status`. */
export class ApiError extends Error {
  readonly reason: StatusReason;
  readonly httpCode: number;
  readonly details: Status['details'];
  constructor(reason: StatusReason, message: string, details?: Status['details'], httpCode?: number) {
    super(message);
    this.name = 'ApiError';
    this.reason = reason;
    this.httpCode = httpCode ?? HTTP_CODE[reason];
    this.details = details;
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason === 'Unknown' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.httpCode,
    };
  }

  /** Creates the error from a received `Status`. An unknown reason is replaced by one for the HTTP code. */
  static fromStatus(status: Partial<Status>, httpCode: number): ApiError {
    const reason =
      status.reason !== undefined && Object.hasOwn(HTTP_CODE, status.reason)
        ? status.reason
        : reasonOfHttpCode(httpCode);
    return new ApiError(reason, status.message ?? `HTTP ${httpCode}`, status.details, httpCode);
  }
}

export function isApiError(error: unknown, reason?: StatusReason): error is ApiError {
  return error instanceof ApiError && (reason === undefined || error.reason === reason);
}

function reasonOfHttpCode(code: number): StatusReason {
  for (const [reason, value] of Object.entries(HTTP_CODE)) {
    if (value === code) return reason as StatusReason;
  }
  return 'InternalError';
}

interface Subject {
  readonly group: string;
  readonly plural: string;
}

const qualified = (subject: Subject): string =>
  subject.group === '' ? subject.plural : `${subject.plural}.${subject.group}`;
const detailsOf = (subject: Subject, name: string): NonNullable<Status['details']> => ({
  name,
  ...(subject.group === '' ? {} : { group: subject.group }),
  kind: subject.plural,
});

export const errors = {
  notFound: (subject: Subject, name: string): ApiError =>
    new ApiError('NotFound', `${qualified(subject)} "${name}" not found`, detailsOf(subject, name)),
  alreadyExists: (subject: Subject, name: string): ApiError =>
    new ApiError('AlreadyExists', `${qualified(subject)} "${name}" already exists`, detailsOf(subject, name)),
  conflict: (subject: Subject, name: string, why: string): ApiError =>
    new ApiError(
      'Conflict',
      `Operation cannot be fulfilled on ${qualified(subject)} "${name}": ${why}`,
      detailsOf(subject, name),
    ),
  badRequest: (message: string): ApiError => new ApiError('BadRequest', message),
  forbidden: (message: string, details?: Status['details']): ApiError => new ApiError('Forbidden', message, details),
};
