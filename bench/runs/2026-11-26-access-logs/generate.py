# A log of nginx, combined with both times: 200 MB, one hour and a half, slow for five minutes.
import random, sys
random.seed(7)
size, path = int(sys.argv[1]), sys.argv[2]
out = open(path, "w"); n = 0; i = 0
per_s = size / 175 / 5400
t0 = 8 * 3600
agents = ["Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0", "curl/8.5.0", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15"]
while n < size:
    s = int(i / per_s); i += 1
    slow = 3000 <= s < 3300
    ms = random.lognormvariate(3.4, 0.5) * (6 if slow else 1)
    hh, mm, ss = (t0 + s) // 3600, (t0 + s) // 60 % 60, (t0 + s) % 60
    path_ = random.choice(["/cart/%d", "/items/%d/price", "/users/%d", "/search?q=%d"]) % random.randrange(10**6)
    st = random.choice([200] * 30 + [304, 404, 502])
    l = '10.%d.%d.%d - - [03/Nov/2026:%02d:%02d:%02d +0000] "GET %s HTTP/1.1" %d %d "-" "%s" %.3f %.3f\n' % (random.randrange(256), random.randrange(256), random.randrange(256), hh, mm, ss, path_, st, random.randrange(20000), random.choice(agents), ms / 1e3 + .001, ms / 1e3)
    out.write(l); n += len(l)
